import { Link } from 'wouter';
import type { JobRow } from '../../api/types';
import { cells } from '../../parts/cells';
import { CopyId } from '../../parts/CopyText';
import { errorLine } from '../../parts/errorLine';
import { isHandedOver, wasReported } from '../../parts/handedOver';
import { JobStateBadge } from '../../parts/StateBadge';
import { TargetText } from '../../parts/TargetText';
import type { Column } from '../../parts/VirtualTable';
import { Lasted } from '../../time/Lasted';
import { Moment } from '../../time/Moment';

export const COLUMNS: ReadonlyArray<Column<JobRow>> = [
  { name: 'State', width: '116px', narrow: '106px', cell: (row) => <JobStateBadge job={row} /> },
  { name: 'Runs', width: 'minmax(150px, 1.6fr)', cell: (row) => <What job={row} /> },
  { name: 'Schedule', width: 'minmax(100px, 1.2fr)', cell: (row) => <Origin job={row} />, wide: true },
  { name: 'Due', width: 'minmax(150px, 1fr)', narrow: 'minmax(126px, 1fr)', cell: (row) => <Due job={row} /> },
  { name: 'Took', width: '88px', cell: (row) => <Lasted from={row.started_at} to={row.finished_at} />, wide: true },
  { name: 'Attempt', width: '104px', cell: (row) => <Attempts job={row} />, wide: true },
  { name: 'Queue', width: 'minmax(80px, 0.6fr)', cell: (row) => <span className={cells.line}>{row.queue}</span>, wide: true },
  { name: 'Id', width: '126px', cell: (row) => <CopyId id={row.id} />, wide: true },
];

function Due({ job }: { job: JobRow }) {
  if (!isHandedOver(job)) return <Moment at={wasReported(job) ? job.fire_time : job.due_at} show="both" />;
  return (
    <>
      <Moment at={job.fire_time} />
      <span className={cells.soft}>
        report due <Moment at={job.due_at} show="relative" />
      </span>
    </>
  );
}

function What({ job }: { job: JobRow }) {
  return (
    <>
      <Link href={`/jobs/${job.id}`} className={cells.link}>
        <TargetText target={job.target} />
      </Link>
      {job.error ? <span className={cells.soft}>{errorLine(job.error)}</span> : <span className={`${cells.soft} ${cells.stead}`}>{job.schedule}</span>}
    </>
  );
}

function Origin({ job }: { job: JobRow }) {
  if (job.schedule === null) return <span className={cells.soft}>{job.retry_of ? 'retried' : 'one-off'}</span>;
  return (
    <Link href={`/schedules/${encodeURIComponent(job.schedule)}`} className={cells.line}>
      {job.schedule}
    </Link>
  );
}

function Attempts({ job }: { job: JobRow }) {
  return (
    <span className="tabular">
      {job.attempt || '–'}
      {job.failures > 0 && ` · ${job.failures} failed`}
    </span>
  );
}
