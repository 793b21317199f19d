import { Link } from 'wouter';
import type { Schedule } from '../../api/types';
import { cells } from '../../parts/cells';
import { LabelList } from '../../parts/LabelList';

export function NameCell({ schedule }: { schedule: Schedule }) {
  const about = [schedule.owner, schedule.queue === 'default' ? null : schedule.queue]
    .filter(Boolean)
    .join(' · ');
  return (
    <>
      <Link href={`/schedules/${schedule.id}`} className={cells.link}>
        {schedule.name}
      </Link>
      <span className={cells.soft}>
        {about}
        <LabelList labels={schedule.labels} />
      </span>
    </>
  );
}
