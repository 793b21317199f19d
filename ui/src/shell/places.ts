import { lazy, type ComponentType } from 'react';
import type { IconName } from '../parts/Icon';
import type { ScopeName } from '../session/sessionContext';

export interface Place {
  path: string;
  label: string;
  icon: IconName;
  /** Pressed after g. */
  shortcut: string;
  group: 'work' | 'fleet';
  needs: ScopeName;
}

export const PLACES: readonly Place[] = [
  { path: '/', label: 'Overview', icon: 'overview', shortcut: 'o', group: 'work', needs: 'read' },
  { path: '/schedules', label: 'Schedules', icon: 'schedule', shortcut: 's', group: 'work', needs: 'read' },
  { path: '/jobs', label: 'Jobs', icon: 'job', shortcut: 'j', group: 'work', needs: 'read' },
  { path: '/calendar', label: 'Calendar', icon: 'calendar', shortcut: 'c', group: 'work', needs: 'read' },
  { path: '/dead', label: 'Dead letters', icon: 'dead', shortcut: 'd', group: 'work', needs: 'read' },
  { path: '/queues', label: 'Queues', icon: 'queue', shortcut: 'q', group: 'fleet', needs: 'read' },
  { path: '/nodes', label: 'Nodes', icon: 'node', shortcut: 'n', group: 'fleet', needs: 'read' },
  { path: '/keys', label: 'Keys', icon: 'key', shortcut: 'k', group: 'fleet', needs: 'admin' },
];

/** Each page is loaded when it is first opened. */
export const ROUTES: ReadonlyArray<[path: string, page: ComponentType<{ params: { id: string } }>]> = [
  ['/', lazy(() => import('../pages/overview/OverviewPage'))],
  ['/schedules', lazy(() => import('../pages/schedules/SchedulesPage'))],
  ['/schedules/new', lazy(() => import('../pages/schedule/NewSchedulePage'))],
  ['/schedules/:id', lazy(() => import('../pages/schedule/SchedulePage'))],
  ['/jobs', lazy(() => import('../pages/jobs/JobsPage'))],
  ['/jobs/new', lazy(() => import('../pages/job/NewJobPage'))],
  ['/jobs/:id', lazy(() => import('../pages/job/JobPage'))],
  ['/calendar', lazy(() => import('../pages/calendar/CalendarPage'))],
  ['/dead', lazy(() => import('../pages/dead/DeadPage'))],
  ['/queues', lazy(() => import('../pages/queues/QueuesPage'))],
  ['/nodes', lazy(() => import('../pages/nodes/NodesPage'))],
  ['/keys', lazy(() => import('../pages/keys/KeysPage'))],
];
