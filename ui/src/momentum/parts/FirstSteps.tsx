import { Button, Text, Title } from '@mantine/core';
import { Link } from 'wouter';
import { useStatus } from '../session/statusContext';
import classes from './FirstSteps.module.css';

/** What a newcomer does first. */
export function FirstSteps({ hasAccount = false }: { hasAccount?: boolean }) {
  const { status } = useStatus();
  const steps = [
    {
      title: 'Connect an account',
      text: status.demo
        ? 'The demo has its own LinkedIn on this machine: no password, nothing is really published.'
        : 'You sign in at the platform; Momentum never sees your password.',
      href: '/accounts?connect=1',
      verb: 'Connect an account',
      done: hasAccount,
    },
    {
      title: 'Write a post',
      text: 'Add pictures, a document or a video, and see it as your readers will.',
      href: '/new',
      verb: 'Write a post',
      done: false,
    },
    {
      title: 'Choose a time',
      text: 'Momentum publishes it once, at that time, and tells you here what happened.',
      href: '/new',
      verb: 'Schedule',
      done: false,
    },
  ];
  const next = steps.findIndex((step) => !step.done);
  return (
    <section aria-label="First steps">
      <Title order={2} size="h4" ta="center" mt="xl">
        {hasAccount ? 'Ready for your first post' : 'Three steps to your first post'}
      </Title>
      <Text c="dimmed" ta="center" mb="lg" size="sm">
        It takes about two minutes.
      </Text>
      <ol className={classes.root}>
        {steps.map((step, index) => (
          <li key={step.title} className={classes.step} data-next={index === next || undefined}>
            <span className={classes.number}>{step.done ? '✓' : index + 1}</span>
            <Title order={3} size="sm">
              {step.title}
            </Title>
            <p>{step.text}</p>
            {index === next && (
              <Button component={Link} href={step.href} mt="sm">
                {step.verb}
              </Button>
            )}
          </li>
        ))}
      </ol>
    </section>
  );
}
