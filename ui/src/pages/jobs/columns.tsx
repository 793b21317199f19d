import { Link } from 'wouter';
import type { JobRow } from '../../api/types';
import { cells } from '../../parts/cells';
import { CopyId } from '../../parts/CopyText';
import { errorLine } from '../../parts/errorLine';
import { JobStateBadge } from '../../parts/StateBadge';
import { TargetText } from '../../parts/TargetText';
import type { Column } from '../../parts/VirtualTable';
import { Lasted } from '../../time/Lasted';
import { Moment } from '../../time/Moment';

export const COLUMNS: ReadonlyArray<Column<JobRow>> = [
  { name: 'State', width: '116px', cell: (row) => <JobStateBadge job={row} /> },
  { name: 'Runs', width: 'minmax(150px, 2fr)', cell: (row) => <What job={row} /> },
  { name: 'Schedule', width: 'minmax(100px, 1fr)', cell: (row) => <Origin job={row} />, wide: true },
  { name: 'Due', width: 'minmax(150px, 1fr)', cell: (row) => <Moment at={row.due_at} show="both" /> },
  { name: 'Took', width: '96px', cell: (row) => <Lasted from={row.started_at} to={row.finished_at} />, wide: true },
  { name: 'Attempt', width: '104px', cell: (row) => <Attempts job={row} />, wide: true },
  { name: 'Queue', width: 'minmax(80px, 0.6fr)', cell: (row) => <span className={cells.line}>{row.queue}</span>, wide: true },
  { name: 'Id', width: '116px', cell: (row) => <CopyId id={row.id} />, wide: true },
];

function What({ job }: { job: JobRow }) {
  return (
    <>
      <Link href={`/jobs/${job.id}`} className={cells.link}>
        <TargetText target={job.target} />
      </Link>
      {job.error && <span className={cells.soft}>{errorLine(job.error)}</span>}
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
