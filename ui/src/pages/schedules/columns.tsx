import type { Schedule } from '../../api/types';
import { StateBadge } from '../../parts/StateBadge';
import { TargetText } from '../../parts/TargetText';
import type { Column } from '../../parts/VirtualTable';
import { Moment } from '../../time/Moment';
import { LastRuns } from './LastRuns';
import { NameCell } from './NameCell';
import { ScheduleMenu } from './ScheduleMenu';
import { stateOf, zoneOf } from './shown';
import { WhenText } from './WhenText';

function elsewhere(schedule: Schedule): { also?: string } {
  const zone = zoneOf(schedule);
  return zone === undefined ? {} : { also: zone };
}

export const COLUMNS: ReadonlyArray<Column<Schedule>> = [
  { name: 'Name', width: 'minmax(140px, 1.6fr)', narrow: 'minmax(0, 1.2fr)', cell: (row) => <NameCell schedule={row} /> },
  { name: 'When', width: 'minmax(140px, 2fr)', narrow: 'minmax(0, 1fr)', cell: (row) => <WhenText schedule={row} /> },
  { name: 'Runs', width: 'minmax(130px, 1fr)', cell: (row) => <TargetText target={row.target} />, wide: true },
  { name: 'Last runs', width: '110px', cell: (row) => <LastRuns schedule={row} />, wide: true },
  { name: 'Next fire', width: 'minmax(200px, 1fr)', cell: (row) => <Moment at={row.next_fire_time} show="both" {...elsewhere(row)} absent={row.paused ? 'when resumed' : 'none'} />, wide: true },
  { name: 'State', width: '100px', narrow: '88px', cell: (row) => <StateBadge state={stateOf(row)} /> },
  { name: '', width: '48px', cell: (row) => <ScheduleMenu schedule={row} />, wide: true },
];
