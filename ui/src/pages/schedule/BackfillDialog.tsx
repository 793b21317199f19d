import { Button, Group, Modal, Stack, Text, TextInput } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { call } from '../../api/call';
import type { Schedule } from '../../api/types';
import { ProblemNote } from '../../parts/ProblemNote';
import { serverNow } from '../../time/clock';
import { zoneOf } from '../schedules/shown';
import { isoOf, localOf } from './whenDraft';

const DAY = 86_400_000;

/** Jobs for fires of the past that none stands for, call after call until the range is done. */
export function BackfillDialog({ schedule, onClose }: { schedule: Schedule; onClose: () => void }) {
  const zone = zoneOf(schedule) ?? 'UTC';
  const [from, setFrom] = useState(() => localOf(new Date(serverNow() - DAY).toISOString(), zone));
  const [to, setTo] = useState(() => localOf(new Date(serverNow()).toISOString(), zone));
  const [added, setAdded] = useState(0);
  const fill = useMutation({ mutationFn: () => backfill(schedule.id, isoOf(from, zone) ?? from, isoOf(to, zone) ?? to, setAdded) });
  return (
    <Modal opened onClose={onClose} title={`Backfill ${schedule.name}`} closeButtonProps={{ 'aria-label': 'Close' }}>
      <Stack>
        <Text size="sm">Every fire in this time that has no job yet gets one. Doing it twice adds nothing. Times are in {zone}.</Text>
        <TextInput type="datetime-local" step={1} label="From" value={from} onChange={(event) => setFrom(event.currentTarget.value)} data-autofocus />
        <TextInput type="datetime-local" step={1} label="To" value={to} onChange={(event) => setTo(event.currentTarget.value)} />
        {fill.error !== null && <ProblemNote error={fill.error} />}
        {(fill.isSuccess || added > 0) && (
          <Text size="sm" role="status">
            {added.toLocaleString('en')} jobs added.
          </Text>
        )}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Close
          </Button>
          <Button onClick={() => fill.mutate()} loading={fill.isPending}>
            Backfill
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}

async function backfill(scheduleId: string, from: string, to: string, tell: (added: number) => void): Promise<void> {
  let total = 0;
  for (let next: string | null = from; next !== null; ) {
    const answer: { added: number; next_from: string | null } = await call('POST /schedules/{schedule_id}/backfill', { path: { schedule_id: scheduleId }, body: { from: next, to } });
    total += answer.added;
    tell(total);
    next = answer.next_from;
  }
}
