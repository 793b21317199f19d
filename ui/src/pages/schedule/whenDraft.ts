import type { When } from '../../api/types';
import { hiddenParts, type Parts } from '../../forms/hiddenParts';
import { BROWSER_ZONE } from '../../time/viewerZone';
import { instantOf, localInput } from '../../time/format';

export type WhenKind = 'cron' | 'every' | 'at' | 'rrule';

/**
 * The `when` of a schedule while it is edited. It keeps the text of every type, so that switching loses
 * nothing.
 */
export interface WhenDraft {
  whenKind: WhenKind;
  cron: string;
  every: string;
  anchor: string;
  at: string;
  rrule: string;
  tz: string;
  /** By type. */
  whenHidden: Readonly<Partial<Record<WhenKind, Parts>>>;
}

/** The parts of each type that the form shows. */
const SHOWN: Readonly<Record<WhenKind, readonly string[]>> = {
  cron: ['cron', 'tz'],
  every: ['every', 'anchor'],
  at: ['at'],
  rrule: ['rrule', 'tz'],
};

export const EMPTY_WHEN: WhenDraft = {
  whenKind: 'cron',
  cron: '0 9 * * MON-FRI',
  every: '5m',
  anchor: '',
  at: '',
  rrule: 'FREQ=WEEKLY;BYDAY=MO;BYHOUR=9;BYMINUTE=0',
  tz: BROWSER_ZONE,
  whenHidden: {},
};

export const whenOf = (draft: WhenDraft): When => ({
  ...draft.whenHidden[draft.whenKind],
  ...shownWhenOf(draft),
});

function shownWhenOf(draft: WhenDraft): When {
  switch (draft.whenKind) {
    case 'cron':
      return { cron: draft.cron.trim(), tz: draft.tz };
    case 'every':
      return {
        every: draft.every.trim(),
        ...(draft.anchor.trim() && { anchor: draft.anchor.trim() }),
      };
    case 'at':
      return { at: isoOf(draft.at, draft.tz) ?? draft.at };
    case 'rrule':
      return { rrule: draft.rrule.trim(), tz: draft.tz };
  }
}

export function draftOfWhen(when: Record<string, string>): WhenDraft {
  const draft = shownDraftOfWhen(when);
  return { ...draft, whenHidden: { [draft.whenKind]: hiddenParts(when, SHOWN[draft.whenKind]) } };
}

function shownDraftOfWhen(when: Record<string, string>): WhenDraft {
  const tz = when['tz'] ?? BROWSER_ZONE;
  const base = { ...EMPTY_WHEN, tz };
  if (when['cron'] !== undefined)
    return { ...base, whenKind: 'cron', cron: when['cron'], tz: when['tz'] ?? 'UTC' };
  if (when['every'] !== undefined)
    return { ...base, whenKind: 'every', every: when['every'], anchor: when['anchor'] ?? '' };
  if (when['rrule'] !== undefined)
    return { ...base, whenKind: 'rrule', rrule: when['rrule'], tz: when['tz'] ?? 'UTC' };
  return { ...base, whenKind: 'at', at: localOf(when['at'] ?? null, tz) };
}

export function isoOf(local: string, zone: string): string | null {
  const at = local ? instantOf(local, zone) : null;
  return at === null ? null : new Date(at).toISOString();
}

export const localOf = (iso: string | null, zone: string): string =>
  iso ? localInput(Date.parse(iso), zone) : '';
