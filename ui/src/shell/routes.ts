import { lazy, type ComponentType } from 'react';
import type { IconName } from '../parts/Icon';
import type { ScopeName } from '../session/sessionContext';

/** An entry of the navigation. */
export interface NavPage {
  path: string;
  label: string;
  icon: IconName;
  /** The key to press after `g`. */
  shortcut: string;
  group: 'work' | 'system';
  scope: ScopeName;
}

export const PAGES: readonly NavPage[] = [
  { path: '/', label: 'Overview', icon: 'overview', shortcut: 'o', group: 'work', scope: 'read' },
  { path: '/schedules', label: 'Schedules', icon: 'schedule', shortcut: 's', group: 'work', scope: 'read' },
  { path: '/jobs', label: 'Jobs', icon: 'job', shortcut: 'j', group: 'work', scope: 'read' },
  { path: '/tasks', label: 'Tasks', icon: 'code', shortcut: 't', group: 'work', scope: 'read' },
  { path: '/calendar', label: 'Calendar', icon: 'calendar', shortcut: 'c', group: 'work', scope: 'read' },
  { path: '/dead', label: 'Dead letters', icon: 'dead', shortcut: 'd', group: 'work', scope: 'read' },
  { path: '/alerts', label: 'Alerts', icon: 'alert', shortcut: 'a', group: 'system', scope: 'read' },
  { path: '/queues', label: 'Queues', icon: 'queue', shortcut: 'q', group: 'system', scope: 'read' },
  { path: '/nodes', label: 'Nodes', icon: 'node', shortcut: 'n', group: 'system', scope: 'read' },
  { path: '/keys', label: 'Keys', icon: 'key', shortcut: 'k', group: 'system', scope: 'admin' },
];

/** A page is loaded when it is first opened. */
export const ROUTES: ReadonlyArray<[path: string, page: ComponentType<{ params: { id: string } }>]> = [
  ['/', lazy(() => import('../pages/overview/OverviewPage'))],
  ['/schedules', lazy(() => import('../pages/schedules/SchedulesPage'))],
  ['/schedules/new', lazy(() => import('../pages/schedule/NewSchedulePage'))],
  ['/schedules/:id', lazy(() => import('../pages/schedule/SchedulePage'))],
  ['/jobs', lazy(() => import('../pages/jobs/JobsPage'))],
  ['/jobs/new', lazy(() => import('../pages/job/NewJobPage'))],
  ['/jobs/:id', lazy(() => import('../pages/job/JobPage'))],
  ['/tasks', lazy(() => import('../pages/tasks/TasksPage'))],
  ['/tasks/:id', lazy(() => import('../pages/task/TaskPage'))],
  ['/calendar', lazy(() => import('../pages/calendar/CalendarPage'))],
  ['/dead', lazy(() => import('../pages/dead/DeadPage'))],
  ['/alerts', lazy(() => import('../pages/alerts/AlertsPage'))],
  ['/queues', lazy(() => import('../pages/queues/QueuesPage'))],
  ['/nodes', lazy(() => import('../pages/nodes/NodesPage'))],
  ['/keys', lazy(() => import('../pages/keys/KeysPage'))],
];
