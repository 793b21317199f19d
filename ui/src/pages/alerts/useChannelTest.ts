import { useMutation } from '@tanstack/react-query';
import { call } from '../../api/call';
import { asProblem } from '../../api/problem';
import { errorLine } from '../../parts/errorLine';

export interface TestResult {
  channel: string;
  jobId: string | null;
  isDelivered: boolean;
  text: string;
}

const MAX_POLLS = 10;

/** Sends a test notice and waits until its delivery has succeeded or failed once. */
export function useChannelTest() {
  const test = useMutation({ mutationFn: testChannel });
  return { test: test.mutate, result: test.data, testing: test.isPending ? test.variables : null };
}

async function testChannel(channel: string): Promise<TestResult> {
  try {
    const { job_id: jobId } = await call('POST /alerts/channels/{channel}/test', { path: { channel } });
    return { channel, jobId, ...(await outcomeOf(jobId)) };
  } catch (error) {
    return { channel, jobId: null, isDelivered: false, text: asProblem(error).message };
  }
}

async function outcomeOf(jobId: string): Promise<Pick<TestResult, 'isDelivered' | 'text'>> {
  for (let poll = 0; poll < MAX_POLLS; poll++) {
    const job = await call('GET /jobs/{job_id}', { path: { job_id: jobId }, query: { wait: '2s' } });
    if (job.state === 'succeeded') return { isDelivered: true, text: 'accepted the test notice' };
    if (job.error) return { isDelivered: false, text: `did not accept it: ${errorLine(job.error)}` };
  }
  return { isDelivered: false, text: 'has not received it yet. Is a node with the role planner running?' };
}
