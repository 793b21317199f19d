import { Button, Group, Loader, Modal, Progress, Stack, Text } from '@mantine/core';
import { useEffect } from 'react';
import type { BulkResult } from '../api/types';
import { plural } from '../parts/plural';
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
  noun: string;
  step: (options: { dry_run?: boolean; cursor?: string }) => Promise<BulkResult>;
  onClose: () => void;
}

const MAX_FAILURES = 20;
const formatCount = (count: number): string => count.toLocaleString('en');

/** Shows how many items match before it runs, then the progress and the failures. */
export function BulkDialog({ action, noun, step, onClose }: BulkDialogProps) {
  const { state, count, run, stop } = useBulk(step);
  useEffect(() => void count(), [count]);
  const running = state.phase === 'running';
  return (
    <Modal
      opened
      onClose={running ? stop : onClose}
      title={`${action.verb}: ${noun}s`}
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      <Stack>
        {state.error != null && (
          <ProblemNote
            error={state.error}
            onRetry={() => void (state.phase === 'counting' ? count() : run())}
          />
        )}
        {state.phase === 'counting' && state.error === null && <Loader size="sm" aria-label="Counting" />}
        {state.phase === 'ready' && (
          <Text>
            {state.atLeast && 'At least '}
            <strong>{plural(state.matched, noun)}</strong> {state.matched === 1 ? 'matches' : 'match'}.{' '}
            {action.note}
          </Text>
        )}
        {(running || state.phase === 'done') && (
          <>
            <Text role="status">
              <strong>{formatCount(state.done)}</strong> of {state.atLeast && 'at least '}
              {formatCount(state.matched)} {action.done}
              {state.failed.length > 0 && `, ${formatCount(state.failed.length)} failed`}.
            </Text>
            <Progress
              value={state.matched ? (100 * (state.done + state.failed.length)) / state.matched : 100}
              aria-label="Progress"
            />
          </>
        )}
        {state.failed.slice(0, MAX_FAILURES).map((failure) => (
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
              Close
            </Button>
          )}
          {state.phase !== 'done' && (
            <Button
              color={action.danger ? 'red' : undefined}
              loading={running}
              disabled={state.phase !== 'ready' || state.matched === 0}
              onClick={() => void run()}
              data-autofocus
            >
              {state.phase === 'ready' ? `${action.verb} (${formatCount(state.matched)})` : action.verb}
            </Button>
          )}
        </Group>
      </Stack>
    </Modal>
  );
}
