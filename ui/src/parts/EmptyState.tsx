import { Stack, Text, ThemeIcon, Title } from '@mantine/core';
import type { ReactNode } from 'react';
import { Icon, type IconName } from './Icon';

interface EmptyStateProps {
  icon: IconName;
  title: string;
  children?: ReactNode;
  action?: ReactNode;
  /** Heading level; 1 when the page shows nothing else. */
  level?: 1 | 2;
}

/** Shown instead of an empty list: what belongs here and how to add it. */
export function EmptyState({ icon, title, children, action, level = 2 }: EmptyStateProps) {
  return (
    <Stack align="center" gap="xs" py={48} px="md" ta="center">
      <ThemeIcon size={48} radius="xl" variant="light">
        <Icon name={icon} size={24} />
      </ThemeIcon>
      <Title order={level} size="h4">
        {title}
      </Title>
      {children && (
        <Text c="dimmed" size="sm" maw={480} component="div">
          {children}
        </Text>
      )}
      {action}
    </Stack>
  );
}
