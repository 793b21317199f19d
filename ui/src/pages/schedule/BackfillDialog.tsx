import { Button, Group, Modal, Stack, Text, TextInput } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { call } from '../../api/call';
import type { Schedule } from '../../api/types';
import { plural } from '../../parts/plural';
import { ProblemNote } from '../../parts/ProblemNote';
import { serverNow } from '../../time/clock';
import { useViewerZone } from '../../time/viewerZone';
import { isoOf, localOf } from './whenDraft';

const DAY = 86_400_000;

/** Creates jobs for past fires that have none, one request after another until the range is done. */
export function BackfillDialog({ schedule, onClose }: { schedule: Schedule; onClose: () => void }) {
  const zone = useViewerZone();
  const [from, setFrom] = useState(() => localOf(new Date(serverNow() - DAY).toISOString(), zone));
  const [to, setTo] = useState(() => localOf(new Date(serverNow()).toISOString(), zone));
  const [added, setAdded] = useState(0);
  const run = useMutation({
    mutationFn: () => backfill(schedule.id, isoOf(from, zone) ?? from, isoOf(to, zone) ?? to, setAdded),
  });
  return (
    <Modal
      opened
      onClose={onClose}
      title={`Backfill ${schedule.name}`}
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      <Stack>
        <Text size="sm">
          Creates a job for every fire in this time range that has none. Running it again adds nothing. Times
          are in {zone}.
        </Text>
        <TextInput
          type="datetime-local"
          step={1}
          label="From"
          value={from}
          onChange={(event) => setFrom(event.currentTarget.value)}
          data-autofocus
        />
        <TextInput
          type="datetime-local"
          step={1}
          label="To"
          value={to}
          onChange={(event) => setTo(event.currentTarget.value)}
        />
        {run.error !== null && <ProblemNote error={run.error} />}
        {(run.isSuccess || added > 0) && (
          <Text size="sm" role="status">
            {plural(added, 'job')} added.
          </Text>
        )}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Close
          </Button>
          <Button onClick={() => run.mutate()} loading={run.isPending}>
            Backfill
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}

async function backfill(
  scheduleId: string,
  from: string,
  to: string,
  onProgress: (added: number) => void,
): Promise<void> {
  let total = 0;
  for (let next: string | null = from; next !== null;) {
    const result: { added: number; next_from: string | null } = await call(
      'POST /schedules/{schedule_id}/backfill',
      { path: { schedule_id: scheduleId }, body: { from: next, to } },
    );
    total += result.added;
    onProgress(total);
    next = result.next_from;
  }
}
