import { Anchor, Group, Paper, Title } from '@mantine/core';
import type { ReactNode } from 'react';
import { Link } from 'wouter';

interface CardProps {
  title: string;
  more?: { href: string; label: string };
  actions?: ReactNode;
  children: ReactNode;
}

export function Card({ title, more, actions, children }: CardProps) {
  return (
    <Paper withBorder p="lg" h="100%" component="section" aria-label={title}>
      <Group justify="space-between" mb="sm">
        <Title order={2} size="h5">
          {title}
        </Title>
        {more && (
          <Anchor component={Link} href={more.href} size="sm">
            {more.label}
          </Anchor>
        )}
        {actions}
      </Group>
      {children}
    </Paper>
  );
}
