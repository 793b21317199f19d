import { Anchor } from '@mantine/core';
import { Link } from 'wouter';
import { Icon } from './Icon';
import classes from './TargetText.module.css';

interface TargetTextProps {
  target: { type: string; [key: string]: unknown };
  /** Wrap long text instead of cutting it off. */
  wrap?: boolean;
}

/** The target of a job: a URL, the name of a task, the words of a command, or a destination; or its shadow. */
export function TargetText({ target, wrap }: TargetTextProps) {
  if (target.type === 'http') {
    const method = <span className={classes.method}>{String(target['method'] ?? '')}</span>;
    const url = shortUrl(String(target['url'] ?? ''));
    return (
      <span
        className={classes.root}
        data-wrap={wrap}
        title={`${String(target['method'] ?? '')} ${String(target['url'] ?? '')}`}
      >
        <Icon name="globe" size={14} />
        {wrap ? (
          <span className={classes.text}>
            {method} {url}
          </span>
        ) : (
          <>
            {method}
            <span className={`${classes.text} ${classes.end}`}>
              <bdi dir="ltr">{url}</bdi>
            </span>
          </>
        )}
      </span>
    );
  }
  const name = targetText(target);
  return (
    <span className={classes.root} data-wrap={wrap} title={name}>
      <Icon name={target.type === 'publish' ? 'arrow' : 'code'} size={14} />
      <span className={`${classes.text} mono`}>{name}</span>
    </span>
  );
}

/** The target, with a link to the page of its task. */
export function TargetLink({ target }: { target: TargetTextProps['target'] }) {
  const text = <TargetText target={target} wrap />;
  if (target.type !== 'task') return text;
  return (
    <Anchor component={Link} href={`/tasks/${encodeURIComponent(String(target['name']))}`} inherit>
      {text}
    </Anchor>
  );
}

/** The target as plain text. */
export function targetText(target: TargetTextProps['target']): string {
  if (target.type === 'shadow') return `shadow of ${targetText(target['target'] as { type: string })}`;
  if (target.type === 'http') return `${String(target['method'] ?? '')} ${String(target['url'] ?? '')}`;
  const { argv, destination, key } = target;
  if (Array.isArray(argv)) return argv.join(' ');
  if (destination) return [destination, key].filter(Boolean).join(' ');
  return String(target['name'] ?? target.type);
}

const shortUrl = (url: string): string => url.replace(/^https?:\/\//, '');
