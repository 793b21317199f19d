import { Accordion, Badge, Button, Group, Skeleton, Stack, Text } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { call } from '../../api/call';
import type { Schedule, Version } from '../../api/types';
import { ConfirmDialog } from '../../parts/ConfirmDialog';
import { Icon } from '../../parts/Icon';
import { ProblemNote } from '../../parts/ProblemNote';
import { say } from '../../parts/toasts';
import { usePages } from '../../parts/usePages';
import { useMay } from '../../session/sessionContext';
import { Moment } from '../../time/Moment';
import { DiffTable } from './DiffTable';

/** Who changed what and when; any of them can be had back. */
export function VersionList({ schedule }: { schedule: Schedule }) {
  const path = { schedule_id: schedule.id };
  const client = useQueryClient();
  const may = useMay('manage');
  const [wanted, setWanted] = useState<Version | null>(null);
  const list = usePages<Version>({
    key: ['versions', schedule.id],
    fetch: (cursor, signal) => call('GET /schedules/{schedule_id}/versions', { path, query: { limit: 50, ...(cursor && { cursor }) }, signal }),
    refresh: false,
  });
  const restore = useMutation({
    mutationFn: (version: Version) => call('POST /schedules/{schedule_id}/restore', { path, body: { version: version.version }, ifMatch: schedule.version }),
    onSuccess: (_, version) => {
      say(`Version ${version.version} is restored`);
      void client.invalidateQueries();
    },
  });
  if (list.isPending) return <Skeleton height={200} />;
  return (
    <Stack>
      {list.error !== null && <ProblemNote error={list.error} />}
      {restore.error !== null && <ProblemNote error={restore.error} title="It was not restored" />}
      <Accordion variant="separated" multiple>
        {list.rows.map((version) => (
          <Accordion.Item key={version.version} value={String(version.version)}>
            <Accordion.Control>
              <Group gap="sm">
                <Text fw={600}>Version {version.version}</Text>
                {version.version === schedule.version && <Badge variant="light" tt="none">current</Badge>}
                <Text size="sm">{version.change}</Text>
                <Text size="sm" c="dimmed">
                  <Moment at={version.at} /> by {version.author ?? 'this machine'}
                </Text>
              </Group>
            </Accordion.Control>
            <Accordion.Panel>
              <Stack>
                <DiffTable diff={version.diff} />
                {version.version !== schedule.version && (
                  <Button variant="default" leftSection={<Icon name="history" />} disabled={!may} loading={restore.isPending} onClick={() => setWanted(version)} w="fit-content">
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
      {wanted !== null && (
        <ConfirmDialog title={`Restore version ${wanted.version}`} verb="Restore" danger={false} onClose={() => setWanted(null)} onConfirm={() => restore.mutate(wanted)}>
          The schedule becomes what it was then, as a new version; the versions between stay in the list.
        </ConfirmDialog>
      )}
    </Stack>
  );
}
