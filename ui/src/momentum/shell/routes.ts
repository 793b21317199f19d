import { lazy } from 'react';
import type { PageRoutes } from '../../shell/Frame';
import type { GlyphName } from '../parts/Glyph';

interface NavPage {
  path: string;
  label: string;
  icon: GlyphName;
  /** The key to press after `g`. */
  shortcut: string;
}

export const PAGES: readonly NavPage[] = [
  { path: '/', label: 'Calendar', icon: 'calendar', shortcut: 'c' },
  { path: '/inbox', label: 'Inbox', icon: 'inbox', shortcut: 'i' },
  { path: '/accounts', label: 'Accounts', icon: 'people', shortcut: 'a' },
  { path: '/log', label: 'Log', icon: 'log', shortcut: 'l' },
];

/** A page is loaded when it is first opened. */
export const ROUTES: PageRoutes = [
  ['/', lazy(() => import('../pages/calendar/CalendarPage'))],
  ['/new', lazy(() => import('../pages/compose/ComposePage'))],
  ['/posts/:id', lazy(() => import('../pages/post/PostPage'))],
  ['/posts/:id/edit', lazy(() => import('../pages/compose/EditPage'))],
  ['/inbox', lazy(() => import('../pages/inbox/InboxPage'))],
  ['/accounts', lazy(() => import('../pages/accounts/AccountsPage'))],
  ['/log', lazy(() => import('../pages/log/LogPage'))],
];
