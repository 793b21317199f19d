import { mediaUrl } from '../../api/call';
import type { Media, Post } from '../../api/types';
import type { PreviewPost } from '../../preview/previewPost';

export function previewOfPost(post: Post, media: Map<string, Media>): PreviewPost {
  const { text, article, visibility } = post;
  const files = post.media.flatMap(({ media_id, alt_text = '', title = '' }) => {
    const found = media.get(media_id);
    if (found === undefined) return [];
    const { kind, name, pages } = found;
    return [{ key: media_id, kind, name, url: mediaUrl(media_id), alt: alt_text, title, pages }];
  });
  return { text, article, visibility, files };
}
