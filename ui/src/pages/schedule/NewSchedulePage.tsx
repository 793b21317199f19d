import { Anchor, Button } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { Link, useLocation } from 'wouter';
import { call } from '../../api/call';
import { useIdempotencyKeys } from '../../api/useIdempotencyKeys';
import { fieldErrors, fieldProblem } from '../../forms/fieldErrors';
import { FormProblem } from '../../forms/FormProblem';
import { useDraft } from '../../forms/useDraft';
import { PageHeader } from '../../parts/PageHeader';
import { showSuccess } from '../../parts/toasts';
import { useHasScope } from '../../session/sessionContext';
import { EditorBar } from './EditorBar';
import { EditorForm } from './EditorForm';
import { bodyOf, emptySchedule } from './scheduleDraft';

export default function NewSchedulePage() {
  const { draft, change, discard, touched } = useDraft('schedule', emptySchedule);
  const [, navigate] = useLocation();
  const client = useQueryClient();
  const canManage = useHasScope('manage');
  const keyFor = useIdempotencyKeys();
  const { body, problem } = bodyOf(draft);
  const create = useMutation({
    mutationFn: async () => {
      if (problem !== null) throw fieldProblem('payload', problem);
      if (!body.name) throw fieldProblem('name', 'Enter a name');
      return await call('POST /schedules', { body, idempotencyKey: keyFor(body) });
    },
    onSuccess: (schedule) => {
      discard();
      showSuccess(`${schedule.name} created`);
      void client.invalidateQueries({ queryKey: ['schedules'] });
      navigate(`/schedules/${schedule.id}`);
    },
  });
  return (
    <>
      <PageHeader
        title="New schedule"
        description={
          <Anchor component={Link} href="/schedules" size="sm">
            Schedules
          </Anchor>
        }
      />
      {create.error !== null && <FormProblem error={create.error} title="Could not create the schedule" />}
      <EditorForm draft={draft} onChange={change} errorAt={fieldErrors(create.error)} isNew />
      <EditorBar draft={draft} onChange={change} touched={touched} onDiscard={() => discard()}>
        <Button onClick={() => create.mutate()} loading={create.isPending} disabled={!canManage}>
          Create schedule
        </Button>
      </EditorBar>
    </>
  );
}
