import { Accordion, Badge, Button, Group, Skeleton, Stack, Text } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { call } from '../../api/call';
import type { Schedule, Version } from '../../api/types';
import { ConfirmDialog } from '../../parts/ConfirmDialog';
import { Icon } from '../../parts/Icon';
import { ProblemNote } from '../../parts/ProblemNote';
import { showSuccess } from '../../parts/toasts';
import { usePages } from '../../parts/usePages';
import { useHasScope } from '../../session/sessionContext';
import { Timestamp } from '../../time/Timestamp';
import { DiffTable } from './DiffTable';

/** The history of a schedule: who changed what, and when. Any version can be restored. */
export function VersionList({ schedule }: { schedule: Schedule }) {
  const path = { schedule_id: schedule.id };
  const client = useQueryClient();
  const canManage = useHasScope('manage');
  const [restoring, setRestoring] = useState<Version | null>(null);
  const list = usePages<Version>({
    key: ['versions', schedule.id],
    fetch: (cursor, signal) =>
      call('GET /schedules/{schedule_id}/versions', {
        path,
        query: { limit: 50, ...(cursor && { cursor }) },
        signal,
      }),
    refresh: false,
  });
  const restore = useMutation({
    mutationFn: (version: Version) =>
      call('POST /schedules/{schedule_id}/restore', {
        path,
        body: { version: version.version },
        ifMatch: schedule.version,
      }),
    onSuccess: (_, version) => {
      showSuccess(`Version ${version.version} restored`);
      void client.invalidateQueries();
    },
  });
  if (list.isPending) return <Skeleton height={200} />;
  return (
    <Stack>
      {list.error !== null && <ProblemNote error={list.error} />}
      {restore.error !== null && <ProblemNote error={restore.error} title="Could not restore the version" />}
      <Accordion variant="separated" multiple>
        {list.rows.map((version) => (
          <Accordion.Item key={version.version} value={String(version.version)}>
            <Accordion.Control>
              <Group gap="sm">
                <Text fw={600}>Version {version.version}</Text>
                {version.version === schedule.version && (
                  <Badge variant="light" tt="none">
                    current
                  </Badge>
                )}
                <Text size="sm">{version.change === 'replaced' ? 'edited' : version.change}</Text>
                <Text size="sm" c="dimmed">
                  <Timestamp at={version.at} /> {version.author && `by ${version.author}`}
                </Text>
              </Group>
            </Accordion.Control>
            <Accordion.Panel>
              <Stack>
                <DiffTable diff={version.diff} />
                {version.version !== schedule.version && (
                  <Button
                    variant="default"
                    leftSection={<Icon name="history" />}
                    disabled={!canManage}
                    loading={restore.isPending}
                    onClick={() => setRestoring(version)}
                    w="fit-content"
                  >
                    Restore version {version.version}
                  </Button>
                )}
              </Stack>
            </Accordion.Panel>
          </Accordion.Item>
        ))}
      </Accordion>
      {list.hasNextPage && (
        <Button variant="default" onClick={() => void list.fetchNextPage()} loading={list.isFetchingNextPage}>
          Earlier versions
        </Button>
      )}
      {restoring !== null && (
        <ConfirmDialog
          title={`Restore version ${restoring.version}`}
          verb="Restore"
          danger={false}
          onClose={() => setRestoring(null)}
          onConfirm={() => restore.mutate(restoring)}
        >
          This creates a new version with the content of version {restoring.version}. The versions in between
          stay in the list.
        </ConfirmDialog>
      )}
    </Stack>
  );
}
