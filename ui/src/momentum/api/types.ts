import type { HoldOut, MediaKind, UsageOut } from './schema';

export type {
  AccountOut as Account,
  ArticleIn as Article,
  CalendarDay,
  HintOut as Hint,
  ImportOut as ImportResult,
  InboxItem,
  LogItem,
  MediaKind,
  MediaOut as Media,
  MediaUseIn as MediaUse,
  NewPostIn as NewPost,
  PostOut as Post,
  PostState,
  SlimPost,
  StatusOut as Status,
  TimelineItem,
} from './schema';

export interface MediaRule {
  types: string[];
  max_bytes: number;
  max_count?: number;
}

/** The limits of a platform: what the page counts and offers. */
export interface Rules {
  max_text: number;
  fold_after: number | null;
  media: Partial<Record<MediaKind, MediaRule>>;
  articles: boolean;
  visibilities: string[];
}

export interface Platform {
  name: string;
  title: string;
  rules: Rules;
  notices: string[];
  hold: HoldOut | null;
  usage: UsageOut;
}
