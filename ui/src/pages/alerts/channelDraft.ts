import type { Body } from '../../api/call';
import type { AlertChannel } from '../../api/types';
import { BROWSER_ZONE } from '../../time/viewerZone';
import { CHANNEL_KINDS, type ChannelField, type ChannelType } from './channelKinds';

type ChannelBody = Body<'PUT /alerts/channels/{channel}'>;
export type QuietTime = Required<NonNullable<ChannelBody['quiet']>[number]>;
export type Day = QuietTime['days'][number];

export const DAYS: readonly Day[] = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'];

/** A channel while it is edited. Secrets are empty, unless the user enters new ones. */
export interface ChannelDraft {
  name: string;
  type: ChannelType;
  values: Readonly<Record<string, string>>;
  /** Stored secrets that the user removes. */
  removed: readonly string[];
  quiet: readonly QuietTime[];
  enabled: boolean;
}

export const EMPTY_CHANNEL: ChannelDraft = {
  name: '',
  type: 'webhook',
  values: {},
  removed: [],
  quiet: [],
  enabled: true,
};

export const newQuietTime = (): QuietTime => ({
  start: '22:00',
  end: '07:00',
  tz: BROWSER_ZONE,
  days: [...DAYS],
});

export function draftOfChannel({ name, type, settings, quiet, enabled }: AlertChannel): ChannelDraft {
  const values = Object.entries(settings).map(([field, value]) => [field, textOf(value)]);
  return {
    name,
    type,
    values: Object.fromEntries(values),
    removed: [],
    quiet: quiet as unknown as readonly QuietTime[],
    enabled,
  };
}

export function bodyOfChannel({ type, values, removed, quiet, enabled }: ChannelDraft): ChannelBody {
  const given = CHANNEL_KINDS[type].fields.flatMap((field) => {
    if (removed.includes(field.name)) return [[field.name, null] as const];
    const text = values[field.name]?.trim();
    return text ? [[field.name, valueOf(field, text)] as const] : [];
  });
  const target = { type, ...Object.fromEntries(given) } as ChannelBody['target'];
  return { target, quiet: [...quiet], enabled };
}

const textOf = (value: unknown): string => (Array.isArray(value) ? value.join(', ') : String(value));

function valueOf({ value }: ChannelField, text: string): unknown {
  if (value === 'list') return text.split(',').flatMap((one) => one.trim() || []);
  return value === 'number' && Number.isInteger(Number(text)) ? Number(text) : text;
}

/** "URL: https://…, signing secret: set". */
export function describeSettings({ type, settings, secrets }: AlertChannel): string {
  return CHANNEL_KINDS[type].fields
    .flatMap(({ name, label }) => {
      if (secrets.includes(name)) return `${label}: set`;
      return name in settings ? `${label}: ${textOf(settings[name])}` : [];
    })
    .join(', ');
}

/** "22:00–07:00 Europe/Berlin", with the days if it is not every day. */
export function describeQuiet({ start, end, tz, days }: QuietTime): string {
  const some = days.length === DAYS.length ? [] : [days.map(titled).join(', ')];
  return [...some, `${start}–${end}`, tz].join(' ');
}

export const titled = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
