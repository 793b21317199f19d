import { Button, Group, Loader, Modal, Progress, Stack, Text } from '@mantine/core';
import { useEffect } from 'react';
import type { BulkAnswer } from '../api/types';
import { ProblemNote } from '../parts/ProblemNote';
import { useBulk } from './useBulk';

export interface BulkAction {
  /** "Pause" */
  verb: string;
  /** "paused" */
  done: string;
  danger?: boolean;
  note: string;
}

interface BulkDialogProps {
  action: BulkAction;
  what: string;
  step: (options: { dry_run?: boolean; cursor?: string }) => Promise<BulkAnswer>;
  onClose: () => void;
}

const MOST_FAILURES = 20;
const number = (count: number): string => count.toLocaleString('en');

/** Says how many it will touch before it does, and what became of them. */
export function BulkDialog({ action, what, step, onClose }: BulkDialogProps) {
  const { state, count, run, stop } = useBulk(step);
  useEffect(() => void count(), [count]);
  const running = state.phase === 'running';
  return (
    <Modal opened onClose={running ? stop : onClose} title={`${action.verb} ${what}`} closeButtonProps={{ 'aria-label': 'Close' }}>
      <Stack>
        {state.error != null && <ProblemNote error={state.error} onRetry={() => void (state.phase === 'counting' ? count() : run())} />}
        {state.phase === 'counting' && state.error === null && <Loader size="sm" aria-label="Counting" />}
        {state.phase === 'ready' && (
          <Text>
            {state.atLeast && 'At least '}
            <strong>{number(state.matched)}</strong> {what} match. {action.note}
          </Text>
        )}
        {(running || state.phase === 'done') && (
          <>
            <Text role="status">
              <strong>{number(state.done)}</strong> of {state.atLeast && 'at least '}
              {number(state.matched)} {action.done}
              {state.failed.length > 0 && `, ${number(state.failed.length)} refused`}.
            </Text>
            <Progress value={state.matched ? (100 * (state.done + state.failed.length)) / state.matched : 100} aria-label="Progress" />
          </>
        )}
        {state.failed.slice(0, MOST_FAILURES).map((failure) => (
          <Text key={failure.id} size="xs">
            <code>{failure.id}</code> {failure.detail} <code>{failure.code}</code>
          </Text>
        ))}
        <Group justify="flex-end">
          {running ? (
            <Button variant="default" onClick={stop}>
              Stop
            </Button>
          ) : (
            <Button variant="default" onClick={onClose}>
              {state.phase === 'done' ? 'Close' : 'Cancel'}
            </Button>
          )}
          {state.phase !== 'done' && (
            <Button color={action.danger ? 'red' : undefined} loading={running} disabled={state.phase !== 'ready' || state.matched === 0} onClick={() => void run()} data-autofocus>
              {action.verb} {state.phase === 'ready' ? number(state.matched) : ''}
            </Button>
          )}
        </Group>
      </Stack>
    </Modal>
  );
}
