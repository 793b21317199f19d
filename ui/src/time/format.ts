const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const YEAR = 365.25 * DAY;
const QUARTER = 15 * MINUTE; // time zones change their offset only at these steps
const MAX_CACHED = 5_000;

const formatters = new Map<string, Intl.DateTimeFormat>();

function formatter(
  locale: string,
  zone: string,
  style: string,
  options: Intl.DateTimeFormatOptions,
): Intl.DateTimeFormat {
  const name = `${locale} ${zone} ${style}`;
  let found = formatters.get(name);
  if (!found)
    formatters.set(
      name,
      (found = new Intl.DateTimeFormat(locale, { ...options, timeZone: zone, hourCycle: 'h23' })),
    );
  return found;
}

/** Caches results: a table asks for the same few values hundreds of times per second. */
function cached(
  compute: (at: number, zone: string) => string,
  grain: number,
): (at: number, zone: string) => string {
  const values = new Map<string, string>();
  return (at, zone) => {
    const name = `${Math.floor(at / grain)} ${zone}`;
    let found = values.get(name);
    if (found === undefined) {
      if (values.size > MAX_CACHED) values.clear();
      values.set(name, (found = compute(at, zone)));
    }
    return found;
  };
}

function shortName(at: number, zone: string, locale: string): string {
  return (
    formatter(locale, zone, 'zone', { timeZoneName: 'short' })
      .formatToParts(at)
      .find((part) => part.type === 'timeZoneName')?.value ?? ''
  );
}

/**
 * "CET" or "EST": the British locale has the European names, the American one the American names. Otherwise
 * the offset.
 */
export const zoneName = cached((at, zone) => {
  const names = ['en-GB', 'en-US'].map((locale) => shortName(at, zone, locale));
  return names.find((name) => !/^GMT[+-]/.test(name)) ?? names[0] ?? zone;
}, QUARTER);

const yearOf = cached(
  (at, zone) => formatter('en-GB', zone, 'year', { year: 'numeric' }).format(at),
  QUARTER,
);

const dateOf = cached(
  (at, zone) =>
    formatter('en-GB', zone, 'date', { weekday: 'short', day: 'numeric', month: 'short' })
      .format(at)
      .replace(',', ''),
  QUARTER,
);

export function clockTime(at: number, zone: string, seconds = true): string {
  const fields: Intl.DateTimeFormatOptions = {
    hour: '2-digit',
    minute: '2-digit',
    ...(seconds && { second: '2-digit' }),
  };
  return formatter('en-GB', zone, seconds ? 'seconds' : 'minutes', fields).format(at);
}

/** "Mon 16 Nov", with the year if it is not the current one. */
export function day(at: number, zone: string, now: number): string {
  const year = yearOf(at, zone);
  return year === yearOf(now, zone) ? dateOf(at, zone) : `${dateOf(at, zone)} ${year}`;
}

/** "02:30:00 CET" today, "Mon 16 Nov 02:30:00 CET" on another day. */
export function fullTime(at: number, zone: string, now: number): string {
  const date = day(at, zone, now);
  const time = `${clockTime(at, zone)} ${zoneName(at, zone)}`;
  return date === day(now, zone, now) ? time : `${date} ${time}`;
}

/** "Mon 23:30 EST". */
export function shortTime(at: number, zone: string): string {
  return `${dateOf(at, zone).slice(0, 3)} ${clockTime(at, zone, false)} ${zoneName(at, zone)}`;
}

/** "in 3 min", "2 h ago". */
export function relative(at: number, now: number): string {
  const duration = Math.abs(at - now);
  if (duration < SECOND) return 'now';
  return at > now ? `in ${formatRoughDuration(duration)}` : `${formatRoughDuration(duration)} ago`;
}

export function formatRoughDuration(duration: number): string {
  if (duration < MINUTE) return `${Math.floor(duration / SECOND)} s`;
  if (duration < HOUR) return `${Math.floor(duration / MINUTE)} min`;
  if (duration < 2 * DAY) return `${Math.floor(duration / HOUR)} h`;
  if (duration < 2 * YEAR) return `${Math.floor(duration / DAY)} d`;
  return `${Math.floor(duration / YEAR)} y`;
}

/** "830 ms", "4.2 s", "3 min 12 s". */
export function formatDuration(milliseconds: number): string {
  if (milliseconds < SECOND) return `${Math.round(milliseconds)} ms`;
  if (milliseconds < 10 * SECOND) return `${(milliseconds / SECOND).toFixed(1)} s`;
  if (milliseconds < MINUTE) return `${Math.round(milliseconds / SECOND)} s`;
  const minutes = Math.floor(milliseconds / MINUTE);
  if (minutes < 60) return `${minutes} min ${Math.floor((milliseconds % MINUTE) / SECOND)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** ISO 8601 in the time zone, without the offset, for `<input type="datetime-local">`. */
export function localInput(at: number, zone: string): string {
  const fields = formatter('sv-SE', zone, 'input', {
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
  });
  return fields.format(at).replace(' ', 'T');
}

/**
 * The instant of a local time in a time zone. If the local time is skipped, the first instant after it; if it
 * occurs twice, the first.
 */
export function instantOf(local: string, zone: string): number | null {
  const asUtc = Date.parse(`${local}Z`);
  if (Number.isNaN(asUtc)) return null;
  const offsets = [asUtc - DAY, asUtc + DAY].map(
    (near) => Date.parse(`${localInput(near, zone)}Z`) - Math.floor(near / SECOND) * SECOND,
  );
  const candidates = offsets.map((offset) => asUtc - offset).toSorted((a, b) => a - b);
  return (
    candidates.find((at) => localInput(at, zone) === localInput(asUtc, 'UTC')) ?? candidates.at(-1) ?? null
  );
}
