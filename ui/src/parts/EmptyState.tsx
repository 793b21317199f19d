import { Stack, Text, ThemeIcon, Title } from '@mantine/core';
import type { ReactNode } from 'react';
import { Icon, type IconName } from './Icon';

interface EmptyStateProps {
  icon: IconName;
  title: string;
  children?: ReactNode;
  action?: ReactNode;
  /** 1 where it is all there is on the page. */
  level?: 1 | 2;
}

/** Nothing here yet: says what would be, and how it gets here. */
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
