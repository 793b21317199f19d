// A worker in JavaScript, without packages: DUETIME_URL=http://127.0.0.1:8080 DUETIME_KEY=dt_... node worker.mjs
// The protocol: docs/workers-in-any-language.md
const { DUETIME_URL = 'http://127.0.0.1:8080', DUETIME_KEY, DUETIME_LEASE: lease = '30s' } = process.env;
const concurrency = Number(process.env.DUETIME_CONCURRENCY ?? 100);
const sleep = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000));
const tasks = {
  'text.reverse': ({ text }) => [...text].reverse().join(''),
  'wait.for': ({ seconds }, { signal }) =>
    Promise.race([sleep(seconds), new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))]),
};
const running = new Map(); // id -> { id, attempt, stop }, until its report is answered
const reports = { complete: [], fail: [] };
const leaving = new AbortController();
let worker, beating, sending, freed;

async function call(path, body, options) {
  const headers = { 'content-type': 'application/json', ...(DUETIME_KEY && { authorization: `Bearer ${DUETIME_KEY}` }) };
  const answer = await fetch(`${DUETIME_URL}/api/v1/workers${path}`, { method: 'POST', headers, body: JSON.stringify(body), ...options });
  const value = answer.status === 204 ? {} : await answer.json();
  if (!answer.ok) throw Object.assign(new Error(value.detail), value);
  return value;
}

async function join() { // also after the lease has ended: then the jobs belong to others
  for (const { stop } of running.values()) stop.abort(new Error('the lease has ended'));
  const named = Object.keys(tasks).map((name) => ({ name }));
  const joined = await call('', { name: `js-${process.pid}`, tasks: named, concurrency, lease });
  worker = joined.worker;
  clearInterval(beating);
  beating = setInterval(() => patiently(beat), joined.heartbeat_seconds * 1000);
  console.log(`worker ${worker} waits for jobs`);
}

async function beat() {
  const jobs = [...running.values()].map(({ id, attempt }) => ({ id, attempt }));
  for (const { id, reason } of (await call(`/${worker}/heartbeat`, { jobs })).stop) running.get(id)?.stop.abort(new Error(reason));
}

async function run({ id, attempt, task, payload }) {
  const stop = new AbortController();
  running.set(id, { id, attempt, stop });
  try {
    reports.complete.push({ id, attempt, result: (await tasks[task](payload, stop)) ?? null });
  } catch ({ name: type, message, stack }) {
    reports.fail.push({ id, attempt, error: { type, message, traceback: stack.slice(0, 8000) } });
  }
  sending ??= send().finally(() => (sending = undefined));
}

async function send() { // what ends during a request goes with the next one
  await new Promise(setImmediate);
  for (const verb of ['complete', 'fail', 'complete', 'fail'])
    while (reports[verb].length) await patiently(() => sendSome(verb));
}

async function sendSome(verb) { // a report that is refused is about a job that others run now
  const jobs = reports[verb].slice(0, 500);
  await call(`/${worker}/${verb}`, { jobs });
  reports[verb].splice(0, jobs.length);
  for (const { id, attempt } of jobs) if (running.get(id)?.attempt === attempt) running.delete(id);
  freed?.();
}

async function patiently(step) { // the service may be away for a while
  try { return await step(); } catch (error) {
    if (leaving.signal.aborted && error.name === 'AbortError') return;
    console.error(error.message);
    await sleep(0.5);
    if (error.code === 'worker_not_found') await patiently(join);
  }
}

async function work() {
  const room = concurrency - running.size;
  if (!room) return new Promise((resolve) => (freed = resolve));
  (await call(`/${worker}/claim`, { max: room, wait: '20s' }, { signal: leaving.signal })).jobs.forEach(run);
}

process.on('SIGTERM', () => leaving.abort());
while (!worker) await patiently(join);
while (!leaving.signal.aborted) await patiently(work);
while (running.size) await sleep(0.05);
await call(`/${worker}`, undefined, { method: 'DELETE' });
process.exit();
