import { Box, Group, Text, Title } from '@mantine/core';
import type { ReactNode } from 'react';
import { useDocumentTitle } from './useDocumentTitle';

interface PageHeaderProps {
  title: ReactNode;
  /** The title as text, if it is not one: for the browser's tab. */
  name?: string;
  description?: ReactNode;
  actions?: ReactNode;
}

export function PageHeader({ title, name, description, actions }: PageHeaderProps) {
  useDocumentTitle(name ?? (typeof title === 'string' ? title : ''));
  return (
    <Group justify="space-between" align="flex-end" mb="md" gap="sm">
      <Box miw={0}>
        <Title order={1} size="h3">
          {title}
        </Title>
        {description && (
          <Text c="dimmed" size="sm" component="div">
            {description}
          </Text>
        )}
      </Box>
      {actions && <Group gap="xs">{actions}</Group>}
    </Group>
  );
}
