import { tokensOf } from './tokens';

/**
 * A text as its author edits it: mentions show only their names. The draft keeps them as `@[Name](urn:…)`;
 * these functions go from one to the other.
 */
interface Mention {
  start: number;
  end: number;
  source: string;
}

/** The text with names instead of mentions. */
export const shownText = (text: string): string =>
  tokensOf(text)
    .map((token) => token.visible)
    .join('');

/**
 * The text after its author changed what is shown. The change ends at the cursor. A mention whose name was
 * changed becomes plain text.
 */
export function afterEdit(text: string, shown: string, cursor: number): string {
  const before = shownText(text);
  const tail = commonSuffix(before, shown.slice(cursor));
  const start = commonPrefix(before.slice(0, before.length - tail), shown.slice(0, shown.length - tail));
  const moved = shown.length - before.length;
  const kept = mentionsOf(text).flatMap((mention) => {
    if (mention.end <= start) return [mention];
    if (mention.start < before.length - tail) return [];
    return [{ ...mention, start: mention.start + moved, end: mention.end + moved }];
  });
  let [result, end] = ['', 0];
  for (const mention of kept) {
    result += shown.slice(end, mention.start) + mention.source;
    end = mention.end;
  }
  return result + shown.slice(end);
}

/** The place in the text of a place in what is shown; after a mention if it is inside of one. */
export function placeInText(text: string, shownPlace: number): number {
  let [place, shown] = [0, 0];
  for (const { kind, source, visible } of tokensOf(text)) {
    if (shown >= shownPlace) break;
    const inside = kind === 'mention' ? source.length : Math.min(source.length, shownPlace - shown);
    place += inside;
    shown += visible.length;
  }
  return place;
}

function mentionsOf(text: string): Mention[] {
  let start = 0;
  return tokensOf(text).flatMap(({ kind, source, visible }) => {
    const mention = { start, end: start + visible.length, source };
    start = mention.end;
    return kind === 'mention' ? [mention] : [];
  });
}

function commonPrefix(one: string, other: string): number {
  const max = Math.min(one.length, other.length);
  let length = 0;
  while (length < max && one[length] === other[length]) length++;
  return length;
}

function commonSuffix(one: string, other: string): number {
  const max = Math.min(one.length, other.length);
  let length = 0;
  while (length < max && one.at(-1 - length) === other.at(-1 - length)) length++;
  return length;
}
