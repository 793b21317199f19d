import { Alert, Button, Group } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useCallback, useState } from 'react';
import { ProblemError } from '../../api/problem';
import type { Schedule } from '../../api/types';
import { fieldErrors, fieldProblem } from '../../forms/fieldErrors';
import { FormProblem } from '../../forms/FormProblem';
import { useDraft } from '../../forms/useDraft';
import { Icon } from '../../parts/Icon';
import { showSuccess } from '../../parts/toasts';
import { useTask } from '../../parts/useTask';
import { useHasScope } from '../../session/sessionContext';
import { EditorBar } from './EditorBar';
import { EditorForm } from './EditorForm';
import { PlanDialog } from './PlanDialog';
import { draftOfSchedule, patchOf } from './scheduleDraft';

interface ScheduleEditorProps {
  schedule: Schedule;
  onSaved: () => void;
}

/**
 * Edits a draft of one version. If the schedule changes meanwhile, the editor says so and overwrites nothing.
 */
export function ScheduleEditor({ schedule, onSaved }: ScheduleEditorProps) {
  const make = useCallback(() => draftOfSchedule(schedule), [schedule]);
  const { draft, change, discard, touched } = useDraft(`schedule:${schedule.id}`, make);
  const [reviewing, setReviewing] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const client = useQueryClient();
  const canManage = useHasScope('manage');
  const declared = useTask(draft.kind === 'task' ? draft.task.trim() : '');
  const { patch, problem } = patchOf(draft, declared);
  const outdated = touched && draft.version !== null && draft.version < schedule.version;
  const handleReview = () => {
    setError(problem === null ? null : fieldProblem('payload', problem));
    setReviewing(problem === null);
  };
  const handleSaved = () => {
    discard();
    setReviewing(false);
    showSuccess(`${schedule.name} saved`);
    void client.invalidateQueries();
    onSaved();
  };
  const handleFailed = (caught: unknown) => {
    setError(caught);
    setReviewing(false);
  };
  return (
    <>
      {outdated && (
        <Alert color="yellow" icon={<Icon name="warning" />} mb="md" title="This schedule has changed">
          You are editing version {draft.version}, but version {schedule.version} is now current. Your changes
          are kept and can be saved on top of it.
          <Group mt="xs">
            <Button size="xs" variant="default" onClick={() => discard()}>
              Discard my changes
            </Button>
            <Button size="xs" variant="default" onClick={() => change({ version: schedule.version })}>
              Keep my changes
            </Button>
          </Group>
        </Alert>
      )}
      {error !== null && (
        <FormProblem
          error={error}
          title={
            error instanceof ProblemError && error.status === 412
              ? 'This schedule has changed'
              : 'Could not save the schedule'
          }
        />
      )}
      <EditorForm draft={draft} onChange={change} errorAt={fieldErrors(error)} isNew={false} />
      <EditorBar draft={draft} onChange={change} touched={touched} onDiscard={() => discard()}>
        <Button
          onClick={handleReview}
          disabled={!canManage || outdated || (problem === null && Object.keys(patch).length === 0)}
        >
          Review and save
        </Button>
      </EditorBar>
      {reviewing && (
        <PlanDialog
          schedule={schedule}
          version={draft.version ?? schedule.version}
          patch={patch}
          onClose={() => setReviewing(false)}
          onSaved={handleSaved}
          onFailed={handleFailed}
        />
      )}
    </>
  );
}
