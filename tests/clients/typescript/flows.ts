// The main flows, with types that openapi-typescript generated: node flows.ts ADDRESS KEY
import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.d.ts";

const [address, key] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl: address, headers: { authorization: `Bearer ${key}` } });
const greet: components["schemas"]["TaskTargetIn"] = { type: "task", name: "greet" };

const made = await client.POST("/api/v1/jobs", { body: { target: greet, payload: { name: "Ada" } } });
assert(made.data?.created);
const job_id = made.data.id;
const done = await client.GET("/api/v1/jobs/{job_id}", { params: { path: { job_id }, query: { wait: "30s" } } });
assert.deepEqual([done.data?.state, done.data?.result, done.data?.queue], ["succeeded", "hello Ada", "greetings"]);

const later = await client.POST("/api/v1/jobs", { body: { target: greet, payload: { name: "b" }, delay: "1h" } });
assert(later.data);
const path = { job_id: later.data.id };
const moved = await client.PATCH("/api/v1/jobs/{job_id}", { params: { path }, body: { priority: 9 } });
assert.equal(moved.data?.priority, 9);
const cancelled = await client.DELETE("/api/v1/jobs/{job_id}", { params: { path } });
assert.equal(cancelled.data?.state, "cancelled");
const page = await client.GET("/api/v1/jobs", { params: { query: { state: "succeeded" } } });
assert(page.data?.items.some((job) => job.id === job_id));

const schedule: components["schemas"]["NewScheduleIn"] = {
  name: "hourly",
  when: { every: "1h" },
  target: { type: "http", url: "https://agent.example/run", method: "PUT" },
};
const created = await client.POST("/api/v1/schedules", { body: schedule });
assert.equal(created.data?.name, "hourly");
const named = { path: { schedule_id: "hourly" } };
const edited = await client.PATCH("/api/v1/schedules/{schedule_id}", {
  params: named,
  body: { when: { cron: "0 9 * * *", tz: "Europe/Berlin" } },
});
assert.equal(edited.data?.version, 2);
const paused = await client.POST("/api/v1/schedules/{schedule_id}/pause", { params: named, body: { note: "holiday" } });
assert.equal(paused.data?.paused, true);
await client.DELETE("/api/v1/schedules/{schedule_id}", { params: named });

const refused = await client.POST("/api/v1/jobs", { body: { target: greet, priority: 12 } });
assert.deepEqual([refused.error?.code, refused.error?.field], ["input_invalid", "priority"]);
