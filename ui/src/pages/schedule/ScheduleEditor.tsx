import { Alert, Button, Group } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useCallback, useState } from 'react';
import { ProblemError } from '../../api/problem';
import type { Schedule } from '../../api/types';
import { fieldErrors } from '../../forms/fieldErrors';
import { useDraft } from '../../forms/useDraft';
import { Icon } from '../../parts/Icon';
import { ProblemNote } from '../../parts/ProblemNote';
import { say } from '../../parts/toasts';
import { useMay } from '../../session/sessionContext';
import { EditorBar } from './EditorBar';
import { EditorForm } from './EditorForm';
import { PlanDialog } from './PlanDialog';
import { draftOfSchedule, patchOf } from './scheduleDraft';

interface ScheduleEditorProps {
  schedule: Schedule;
  onSaved: () => void;
}

/** Edits a copy that began from one version: another's change meanwhile is told, never overwritten unseen. */
export function ScheduleEditor({ schedule, onSaved }: ScheduleEditorProps) {
  const make = useCallback(() => draftOfSchedule(schedule), [schedule]);
  const { draft, change, discard, touched } = useDraft(`schedule:${schedule.id}`, make);
  const [reviewing, setReviewing] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const client = useQueryClient();
  const may = useMay('manage');
  const { patch, problem } = patchOf(draft);
  const behind = touched && draft.version !== null && draft.version < schedule.version;
  const saved = () => {
    discard();
    setReviewing(false);
    say(`${schedule.name} is saved`);
    void client.invalidateQueries();
    onSaved();
  };
  const failed = (told: unknown) => {
    setError(told);
    setReviewing(false);
  };
  return (
    <>
      {behind && (
        <Alert color="yellow" icon={<Icon name="warning" />} mb="md" title="It has changed meanwhile">
          You began from version {draft.version}; version {schedule.version} is there now. Your changes are kept and can be saved on top of it.
          <Group mt="xs">
            <Button size="xs" variant="default" onClick={() => discard()}>
              Take the new version
            </Button>
            <Button size="xs" variant="default" onClick={() => change({ version: schedule.version })}>
              Keep mine
            </Button>
          </Group>
        </Alert>
      )}
      {error !== null && <ProblemNote error={error} title={error instanceof ProblemError && error.status === 412 ? 'It has changed meanwhile' : 'It was not saved'} />}
      <EditorForm draft={draft} onChange={change} errorAt={fieldErrors(error)} isNew={false} />
      <EditorBar draft={draft} onChange={change} touched={touched} onDiscard={() => discard()}>
        <Button onClick={() => setReviewing(true)} disabled={!may || problem !== null || behind || Object.keys(patch).length === 0}>
          Review and save
        </Button>
      </EditorBar>
      {reviewing && <PlanDialog schedule={schedule} version={draft.version ?? schedule.version} patch={patch} onClose={() => setReviewing(false)} onSaved={saved} onFailed={failed} />}
    </>
  );
}
