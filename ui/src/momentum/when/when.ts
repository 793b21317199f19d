import { instantOf, localInput } from '../../time/format';
import { occurrences } from '../../time/occurrences';

/** A time as a person chooses it: on the clock of a zone. */
export interface When {
  date: string;
  time: string;
  zone: string;
  /** The second of two times, in the hour that clocks repeat. */
  later: boolean;
}

export interface Resolved {
  at: number;
  /** How clocks treat the local time. */
  kind: 'once' | 'skipped' | 'twice';
}

export function resolveWhen({ date, time, zone, later }: When): Resolved | null {
  if (!date || !time) return null;
  const local = `${date}T${time}`;
  const found = occurrences(local, zone);
  const [first, second] = found;
  if (first === undefined) {
    const at = instantOf(local, zone);
    return at === null ? null : { at, kind: 'skipped' };
  }
  return second === undefined ? { at: first, kind: 'once' } : { at: later ? second : first, kind: 'twice' };
}

export function whenOf(at: number, zone: string): When {
  const [date = '', time = ''] = localInput(at, zone).split('T');
  return {
    date,
    time: time.replace(/:00$/, ''),
    zone,
    later: occurrences(`${date}T${time}`, zone)[1] === at,
  };
}

/** The fields of a request. */
export const whenFields = (at: number, zone: string) => ({ scheduled_at: new Date(at).toISOString(), zone });
