/** Parts of a post's text. Mentions are written `@[Name](urn:…)`; a reader sees only the name. */
export interface Token {
  kind: 'text' | 'mention' | 'hashtag' | 'url' | 'handle';
  /** As typed. */
  source: string;
  /** As a reader sees it. */
  visible: string;
}

const PATTERN =
  /@\[(?<mention>[^\]\n]*)\]\(urn:[^)\s]+\)|(?<hashtag>#[\p{L}\p{N}_]+)|(?<url>https?:\/\/[^\s)]+)|(?<handle>(?<![\w.])@\w[\w.-]*(?:@[\w.-]+\w)?)/gu;

export function tokensOf(text: string): Token[] {
  const tokens: Token[] = [];
  let end = 0;
  for (const found of text.matchAll(PATTERN)) {
    if (found.index > end) tokens.push(plain(text.slice(end, found.index)));
    tokens.push(special(found));
    end = found.index + found[0].length;
  }
  if (end < text.length) tokens.push(plain(text.slice(end)));
  return tokens;
}

const plain = (text: string): Token => ({ kind: 'text', source: text, visible: text });

function special(found: RegExpExecArray): Token {
  const { mention, hashtag, url } = found.groups ?? {};
  const source = found[0];
  if (mention !== undefined) return { kind: 'mention', source, visible: mention };
  return { kind: hashtag ? 'hashtag' : url ? 'url' : 'handle', source, visible: source };
}

/** Characters as the server counts them: code points of the visible text. */
export function visibleLength(text: string): number {
  return tokensOf(text).reduce((total, token) => total + codePoints(token.visible), 0);
}

/** Counts without making an array: this runs at every key press. */
export function codePoints(text: string): number {
  let count = 0;
  for (let index = 0; index < text.length; index++, count++) {
    if ((text.codePointAt(index) ?? 0) > 0xffff) index++;
  }
  return count;
}

/** The position in `text` of its first so many code points. */
export function offsetOf(text: string, points: number): number {
  let index = 0;
  for (let count = 0; count < points && index < text.length; count++) {
    index += (text.codePointAt(index) ?? 0) > 0xffff ? 2 : 1;
  }
  return index;
}

/** The tokens before and after a number of visible characters. */
export function splitTokens(tokens: Token[], visible: number): [Token[], Token[]] {
  const before: Token[] = [];
  let left = visible;
  for (const [index, token] of tokens.entries()) {
    const length = codePoints(token.visible);
    if (length > left) {
      if (token.kind === 'mention') return [before, tokens.slice(index)];
      const cut = offsetOf(token.visible, left);
      const [head, tail] = [token.visible.slice(0, cut), token.visible.slice(cut)];
      const parts = { ...token, source: head, visible: head };
      const rest = { ...token, source: tail, visible: tail };
      return [head ? [...before, parts] : before, [rest, ...tokens.slice(index + 1)]];
    }
    before.push(token);
    left -= length;
  }
  return [before, []];
}

const MAX_TITLE = 80;

/** The first line, for lists. */
export function titleOf(text: string): string {
  const lines = tokensOf(text)
    .map((token) => token.visible)
    .join('')
    .split('\n');
  const first = lines.find((line) => line.trim())?.trim() ?? '';
  return codePoints(first) <= MAX_TITLE ? first : `${first.slice(0, offsetOf(first, MAX_TITLE - 1))}…`;
}
