const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const YEAR = 365.25 * DAY;
const QUARTER = 15 * MINUTE; // no zone changes its clocks between two of them
const MOST_REMEMBERED = 5_000;

const formatters = new Map<string, Intl.DateTimeFormat>();

function formatter(locale: string, zone: string, style: string, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const name = `${locale} ${zone} ${style}`;
  let found = formatters.get(name);
  if (!found) formatters.set(name, (found = new Intl.DateTimeFormat(locale, { ...options, timeZone: zone, hourCycle: 'h23' })));
  return found;
}

/** What was worked out is kept: a table asks for the same few answers hundreds of times a second. */
function remembered(work: (at: number, zone: string) => string, grain: number): (at: number, zone: string) => string {
  const known = new Map<string, string>();
  return (at, zone) => {
    const name = `${Math.floor(at / grain)} ${zone}`;
    let found = known.get(name);
    if (found === undefined) {
      if (known.size > MOST_REMEMBERED) known.clear();
      known.set(name, (found = work(at, zone)));
    }
    return found;
  };
}

function shortName(at: number, zone: string, locale: string): string {
  return formatter(locale, zone, 'zone', { timeZoneName: 'short' }).formatToParts(at).find((one) => one.type === 'timeZoneName')?.value ?? '';
}

/** "CET", "EST": British English knows Europe's names, American English America's; elsewhere it is the offset. */
export const zoneName = remembered((at, zone) => {
  const names = ['en-GB', 'en-US'].map((locale) => shortName(at, zone, locale));
  return names.find((name) => !/^GMT[+-]/.test(name)) ?? names[0] ?? zone;
}, QUARTER);

const yearOf = remembered((at, zone) => formatter('en-GB', zone, 'year', { year: 'numeric' }).format(at), QUARTER);

const dateOf = remembered((at, zone) => formatter('en-GB', zone, 'date', { weekday: 'short', day: 'numeric', month: 'short' }).format(at).replace(',', ''), QUARTER);

export function clockTime(at: number, zone: string, seconds = true): string {
  const fields: Intl.DateTimeFormatOptions = { hour: '2-digit', minute: '2-digit', ...(seconds && { second: '2-digit' }) };
  return formatter('en-GB', zone, seconds ? 'seconds' : 'minutes', fields).format(at);
}

/** "Mon 16 Nov", with the year where it is another. */
export function day(at: number, zone: string, now: number): string {
  const year = yearOf(at, zone);
  return year === yearOf(now, zone) ? dateOf(at, zone) : `${dateOf(at, zone)} ${year}`;
}

/** "02:30:00 CET" today, "Mon 16 Nov 02:30:00 CET" on another day: always with the zone. */
export function fullTime(at: number, zone: string, now: number): string {
  const date = day(at, zone, now);
  const shown = `${clockTime(at, zone)} ${zoneName(at, zone)}`;
  return date === day(now, zone, now) ? shown : `${date} ${shown}`;
}

/** "in 3 min", "2 h ago". */
export function relative(at: number, now: number): string {
  const lapse = Math.abs(at - now);
  if (lapse < SECOND) return 'now';
  return at > now ? `in ${roughly(lapse)}` : `${roughly(lapse)} ago`;
}

export function roughly(lapse: number): string {
  if (lapse < MINUTE) return `${Math.floor(lapse / SECOND)} s`;
  if (lapse < HOUR) return `${Math.floor(lapse / MINUTE)} min`;
  if (lapse < 2 * DAY) return `${Math.floor(lapse / HOUR)} h`;
  if (lapse < 2 * YEAR) return `${Math.floor(lapse / DAY)} d`;
  return `${Math.floor(lapse / YEAR)} y`;
}

/** "830 ms", "4.2 s", "3 min 12 s". */
export function lasting(milliseconds: number): string {
  if (milliseconds < SECOND) return `${Math.round(milliseconds)} ms`;
  if (milliseconds < 10 * SECOND) return `${(milliseconds / SECOND).toFixed(1)} s`;
  if (milliseconds < MINUTE) return `${Math.round(milliseconds / SECOND)} s`;
  const minutes = Math.floor(milliseconds / MINUTE);
  if (minutes < 60) return `${minutes} min ${Math.floor((milliseconds % MINUTE) / SECOND)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** ISO 8601 in the zone, without its offset, for `<input type="datetime-local">`. */
export function localInput(at: number, zone: string): string {
  const fields = formatter('sv-SE', zone, 'input', { year: 'numeric', month: '2-digit', day: '2-digit', hour: '2-digit', minute: '2-digit', second: '2-digit' });
  return fields.format(at).replace(' ', 'T');
}

/** The instant of a local time in a zone. In a gap it is the moment after, in a fold the first of the two. */
export function instantOf(local: string, zone: string): number | null {
  const asUtc = Date.parse(`${local}Z`);
  if (Number.isNaN(asUtc)) return null;
  const offsets = [asUtc - DAY, asUtc + DAY].map((near) => Date.parse(`${localInput(near, zone)}Z`) - Math.floor(near / SECOND) * SECOND);
  const candidates = offsets.map((offset) => asUtc - offset).toSorted((a, b) => a - b);
  return candidates.find((at) => localInput(at, zone) === localInput(asUtc, 'UTC')) ?? candidates.at(-1) ?? null;
}
