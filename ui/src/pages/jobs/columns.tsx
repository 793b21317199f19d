import { Link } from 'wouter';
import type { JobRow } from '../../api/types';
import { cells } from '../../parts/cells';
import { CopyId } from '../../parts/CopyText';
import { errorLine } from '../../parts/errorLine';
import { isExternal, wasReportedInTime } from '../../parts/externalJob';
import { hasFields, PayloadText } from '../../parts/PayloadText';
import { JobStateBadge } from '../../parts/StateBadge';
import { TargetText } from '../../parts/TargetText';
import type { Column } from '../../parts/column';
import { Elapsed } from '../../time/Elapsed';
import { Timestamp } from '../../time/Timestamp';

export const COLUMNS: ReadonlyArray<Column<JobRow>> = [
  { name: 'State', width: '116px', narrow: '106px', cell: (row) => <JobStateBadge job={row} /> },
  { name: 'Target', width: 'minmax(150px, 1.6fr)', cell: (row) => <TargetCell job={row} /> },
  { name: 'Schedule', width: 'minmax(100px, 1.2fr)', cell: (row) => <ScheduleCell job={row} />, wide: true },
  {
    name: 'Due',
    width: 'minmax(150px, 1fr)',
    narrow: 'minmax(126px, 1fr)',
    cell: (row) => <DueCell job={row} />,
  },
  {
    name: 'Duration',
    width: '88px',
    cell: (row) => <Elapsed from={row.started_at} to={row.finished_at} />,
    wide: true,
  },
  { name: 'Attempt', width: '104px', cell: (row) => <AttemptsCell job={row} />, wide: true },
  {
    name: 'Queue',
    width: 'minmax(80px, 0.6fr)',
    cell: (row) => <span className={cells.line}>{row.queue}</span>,
    wide: true,
  },
  { name: 'Id', width: '126px', cell: (row) => <CopyId id={row.id} />, wide: true },
];

function DueCell({ job }: { job: JobRow }) {
  if (!isExternal(job))
    return <Timestamp at={wasReportedInTime(job) ? job.fire_time : job.due_at} show="both" />;
  return (
    <>
      <Timestamp at={job.fire_time} />
      <span className={cells.soft}>
        report due <Timestamp at={job.due_at} show="relative" />
      </span>
    </>
  );
}

function TargetCell({ job }: { job: JobRow }) {
  return (
    <>
      <Link href={`/jobs/${job.id}`} className={cells.link}>
        <TargetText target={job.target} />
      </Link>
      {job.error ? (
        <span className={cells.softLine}>{errorLine(job.error)}</span>
      ) : hasFields(job) ? (
        <PayloadText job={job} />
      ) : (
        <span className={`${cells.soft} ${cells.narrowOnly}`}>{job.schedule}</span>
      )}
    </>
  );
}

function ScheduleCell({ job }: { job: JobRow }) {
  if (job.schedule === null) return <span className={cells.soft}>{job.retry_of ? 'retry' : 'one-off'}</span>;
  return (
    <Link href={`/schedules/${encodeURIComponent(job.schedule)}`} className={cells.line}>
      {job.schedule}
    </Link>
  );
}

function AttemptsCell({ job }: { job: JobRow }) {
  return (
    <span className="tabular">
      {job.attempt || '–'}
      {job.failures > 0 && ` · ${job.failures} failed`}
    </span>
  );
}
