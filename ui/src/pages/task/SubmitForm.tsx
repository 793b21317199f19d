import { Anchor, Button, Group } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { useCallback } from 'react';
import { Link, useLocation } from 'wouter';
import { call } from '../../api/call';
import { useIdempotencyKeys } from '../../api/useIdempotencyKeys';
import type { NewJob, Task } from '../../api/types';
import { fieldErrors, fieldProblem } from '../../forms/fieldErrors';
import { FormProblem } from '../../forms/FormProblem';
import { Section } from '../../forms/Section';
import { useDraft } from '../../forms/useDraft';
import { JsonInput } from '../../parts/JsonInput';
import { readJson, showJson } from '../../parts/json';
import { showSuccess } from '../../parts/toasts';
import { useHasScope } from '../../session/sessionContext';

/** Submits one job of the task. Everything but the arguments stays as the task declares it. */
export function SubmitForm({ task }: { task: Task }) {
  const make = useCallback(
    () => ({
      payload: showJson(Object.fromEntries(task.arguments.map(({ name, default: value }) => [name, value]))),
    }),
    [task],
  );
  const { draft, change, discard } = useDraft(`task:${task.name}`, make);
  const [, navigate] = useLocation();
  const canSubmit = useHasScope('submit');
  const keyFor = useIdempotencyKeys();
  const { value, problem } = readJson(draft.payload);
  const submit = useMutation({
    mutationFn: async () => {
      if (problem !== null) throw fieldProblem('payload', problem);
      const body: NewJob = {
        target: { type: 'task', name: task.name },
        ...(value !== undefined && { payload: value }),
      };
      return await call('POST /jobs', { body, idempotencyKey: keyFor(body) });
    },
    onSuccess: (job) => {
      discard();
      showSuccess('Job submitted');
      navigate(`/jobs/${job.id}`);
    },
  });
  const errorAt = fieldErrors(submit.error);
  return (
    <Section title="Submit a job">
      <JsonInput
        label="Arguments (JSON)"
        value={draft.payload}
        onChange={(payload) => change({ payload })}
        error={errorAt('payload') ?? null}
        rows={4}
      />
      {submit.error !== null && <FormProblem error={submit.error} title="Could not submit the job" />}
      <Group justify="space-between">
        <Anchor component={Link} href={`/jobs/new?task=${encodeURIComponent(task.name)}`} size="sm">
          More options
        </Anchor>
        <Button onClick={() => submit.mutate()} loading={submit.isPending} disabled={!canSubmit}>
          Submit job
        </Button>
      </Group>
    </Section>
  );
}
