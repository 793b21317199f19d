import { Anchor, Button, Group, SegmentedControl, Stack, TextInput } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { useCallback } from 'react';
import { Link, useLocation, useSearch } from 'wouter';
import { call } from '../../api/call';
import { useIdempotencyKeys } from '../../api/useIdempotencyKeys';
import { fieldErrors, fieldProblem } from '../../forms/fieldErrors';
import { FormProblem } from '../../forms/FormProblem';
import { RunFields } from '../../forms/RunFields';
import { Section } from '../../forms/Section';
import { PAYLOAD_USE } from '../../forms/targetDraft';
import { TargetFields } from '../../forms/TargetFields';
import { useDraft } from '../../forms/useDraft';
import { JsonInput } from '../../parts/JsonInput';
import { PageHeader } from '../../parts/PageHeader';
import { readJson } from '../../parts/json';
import { showSuccess } from '../../parts/toasts';
import { useHasScope } from '../../session/sessionContext';
import { useViewerZone } from '../../time/viewerZone';
import { emptyJob, newJobOf, type JobDraft } from './jobDraft';

export default function NewJobPage() {
  const task = new URLSearchParams(useSearch()).get('task');
  const { draft, change, discard, touched } = useDraft(
    task ? `job:${task}` : 'job',
    useCallback(() => (task ? { ...emptyJob(), kind: 'task' as const, task } : emptyJob()), [task]),
  );
  const zone = useViewerZone();
  const [, navigate] = useLocation();
  const canSubmit = useHasScope('submit');
  const keyFor = useIdempotencyKeys();
  const payload = readJson(draft.payload);
  const submit = useMutation({
    mutationFn: async () => {
      if (payload.problem !== null) throw fieldProblem('payload', payload.problem);
      const body = newJobOf(draft, payload.value, zone);
      return await call('POST /jobs', { body, idempotencyKey: keyFor(body) });
    },
    onSuccess: (job) => {
      discard();
      showSuccess(job.created ? 'Job submitted' : 'A job with this unique key already exists');
      navigate(`/jobs/${job.id}`);
    },
  });
  const errorAt = fieldErrors(submit.error);
  return (
    <>
      <PageHeader
        title="Submit a job"
        description={
          <Anchor component={Link} href="/jobs" size="sm">
            Jobs
          </Anchor>
        }
      />
      <Stack maw={820}>
        {submit.error !== null && <FormProblem error={submit.error} title="Could not submit the job" />}
        <TargetFields draft={draft} onChange={change} payload={payload.value} errorAt={errorAt} />
        <Section title="Payload" description={PAYLOAD_USE[draft.kind]}>
          <JsonInput
            label="Payload (JSON)"
            value={draft.payload}
            onChange={(text) => change({ payload: text })}
            error={errorAt('payload') ?? null}
            rows={4}
          />
        </Section>
        <Section title="Start time">
          <SegmentedControl
            value={draft.start}
            onChange={(start) => change({ start: start as JobDraft['start'] })}
            data={[
              { value: 'now', label: 'Now' },
              { value: 'delay', label: 'After a delay' },
              { value: 'at', label: 'At a time' },
            ]}
            aria-label="Start time"
            w="fit-content"
          />
          {draft.start === 'delay' && (
            <TextInput
              label="Delay"
              description="e.g. 30s, 15m, 1h30m"
              value={draft.delay}
              onChange={(event) => change({ delay: event.currentTarget.value })}
              error={errorAt('delay')}
              maw={240}
            />
          )}
          {draft.start === 'at' && (
            <TextInput
              type="datetime-local"
              step={1}
              label={`At (${zone})`}
              value={draft.atTime}
              onChange={(event) => change({ atTime: event.currentTarget.value })}
              error={errorAt('at')}
              maw={280}
            />
          )}
          <TextInput
            label="Unique key"
            description="While this job exists, a second job with the same key is not created"
            placeholder="none"
            value={draft.uniqueKey}
            onChange={(event) => change({ uniqueKey: event.currentTarget.value })}
            error={errorAt('unique_key')}
            maw={420}
          />
        </Section>
        <RunFields draft={draft} onChange={change} errorAt={errorAt} />
        <Group justify="flex-end">
          <Button variant="default" onClick={() => discard()} disabled={!touched}>
            Discard
          </Button>
          <Button onClick={() => submit.mutate()} loading={submit.isPending} disabled={!canSubmit}>
            Submit job
          </Button>
        </Group>
      </Stack>
    </>
  );
}
