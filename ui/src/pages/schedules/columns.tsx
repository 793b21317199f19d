import type { Schedule } from '../../api/types';
import { StateBadge } from '../../parts/StateBadge';
import { TargetText } from '../../parts/TargetText';
import type { Column } from '../../parts/column';
import { Timestamp } from '../../time/Timestamp';
import { LastRuns } from './LastRuns';
import { NameCell } from './NameCell';
import { ScheduleMenu } from './ScheduleMenu';
import { stateOf, zoneOf } from './scheduleFields';
import { WhenText } from './WhenText';

function otherZone(schedule: Schedule): { otherZone?: string } {
  const zone = zoneOf(schedule);
  return zone === undefined ? {} : { otherZone: zone };
}

export const COLUMNS: ReadonlyArray<Column<Schedule>> = [
  {
    name: 'Name',
    width: 'minmax(140px, 1.6fr)',
    narrow: 'minmax(0, 1.2fr)',
    cell: (row) => <NameCell schedule={row} />,
  },
  {
    name: 'When',
    width: 'minmax(140px, 2fr)',
    narrow: 'minmax(0, 1fr)',
    cell: (row) => <WhenText schedule={row} />,
  },
  {
    name: 'Target',
    width: 'minmax(150px, 1fr)',
    cell: (row) => <TargetText target={row.target} />,
    wide: true,
  },
  { name: 'Last runs', width: '110px', cell: (row) => <LastRuns schedule={row} />, wide: true },
  {
    name: 'Next fire',
    width: 'minmax(200px, 1fr)',
    cell: (row) => (
      <Timestamp
        at={row.next_fire_time}
        show="both"
        {...otherZone(row)}
        placeholder={row.paused ? 'when resumed' : 'none'}
      />
    ),
    wide: true,
  },
  { name: 'State', width: '100px', narrow: '88px', cell: (row) => <StateBadge state={stateOf(row)} /> },
  { name: '', width: '48px', cell: (row) => <ScheduleMenu schedule={row} />, wide: true },
];
