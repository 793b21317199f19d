import { Alert, Paper, Skeleton, Stack, Text, Title } from '@mantine/core';
import type { Preview } from '../../api/types';
import { Icon } from '../../parts/Icon';
import { ProblemNote } from '../../parts/ProblemNote';
import { FireList } from './FireList';
import classes from './PreviewPanel.module.css';

interface PreviewPanelProps {
  preview: Preview | undefined;
  error: unknown;
  zone: string;
}

/** The schedule in words and its next fires, updated while typing. */
export function PreviewPanel({ preview, error, zone }: PreviewPanelProps) {
  return (
    <Paper withBorder p="lg" className={classes.root} component="section" aria-label="Next fires">
      <Stack gap="sm" aria-live="polite">
        {error != null ? (
          <ProblemNote error={error} title="This schedule is invalid" />
        ) : preview === undefined ? (
          <Skeleton height={180} />
        ) : (
          <>
            <Text fw={600} className={classes.words}>
              {preview.words}
            </Text>
            {preview.warnings.map((warning) => (
              <Alert key={warning} color="yellow" icon={<Icon name="warning" />} p="xs">
                {warning}
              </Alert>
            ))}
            <Title order={3} size="h6" c="dimmed">
              Next fires
            </Title>
            <FireList fires={preview.fires} zone={zone} />
          </>
        )}
      </Stack>
    </Paper>
  );
}
