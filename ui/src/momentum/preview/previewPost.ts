import type { Article, MediaKind } from '../api/types';

export interface PreviewFile {
  key: string;
  kind: MediaKind;
  name: string;
  url: string;
  alt: string;
  title: string;
  pages: number | null;
}

/** What a preview shows; the composer has it before anything is stored. */
export interface PreviewPost {
  text: string;
  files: PreviewFile[];
  article: Article | null;
  visibility: string;
}
