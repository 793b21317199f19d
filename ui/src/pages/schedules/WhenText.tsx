import type { Schedule } from '../../api/types';
import { cells } from '../../parts/cells';
import { expressionOf } from './scheduleFields';

export function WhenText({ schedule }: { schedule: Schedule }) {
  return (
    <div title={schedule.description}>
      <span className={cells.line}>{schedule.description}</span>
      <span className={`${cells.soft} mono`}>{expressionOf(schedule.when)}</span>
    </div>
  );
}
