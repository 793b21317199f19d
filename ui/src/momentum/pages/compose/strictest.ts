import type { Account, Platform } from '../../api/types';

export interface CommonRules {
  maxText: number | null;
  foldAfter: number | null;
  visibilities: string[];
  fileTypes: string[];
  imageTypes: string[];
  articles: boolean;
}

/** The limits that hold for all chosen accounts; those of the first platform before one is chosen. */
export function strictest(accounts: Account[], platforms: Platform[]): CommonRules {
  const names = new Set(accounts.map((account) => account.platform));
  const matching = platforms.filter(({ name }) => names.has(name));
  const all = (matching.length > 0 ? matching : platforms.slice(0, 1)).map(({ rules }) => rules);
  // A server of a platform may have a limit of its own, which its accounts know.
  const own = accounts.flatMap(({ max_text }) => (max_text === null ? [] : [max_text]));
  const limits = own.length > 0 ? own : all.map((rules) => rules.max_text);
  const media = all.map((rules) => Object.values(rules.media).flatMap((rule) => rule.types));
  return {
    maxText: limits.length > 0 ? Math.min(...limits) : null,
    foldAfter: all.find((rules) => rules.fold_after !== null)?.fold_after ?? null,
    visibilities: all[0]?.visibilities ?? [],
    fileTypes: (media[0] ?? []).filter((type) => media.every((types) => types.includes(type))),
    imageTypes: all[0]?.media.image?.types ?? [],
    articles: all.every((rules) => rules.articles),
  };
}
