import { mediaUrl } from '../api/call';
import type { Article } from '../api/types';
import { Glyph } from '../parts/Glyph';
import { plural } from '../../parts/plural';
import classes from './FeedCard.module.css';
import type { PreviewFile } from './previewPost';

const MAX_TILES = 5;

/** Pictures as a grid, a video, or a document as a card. */
export function FeedMedia({ files }: { files: PreviewFile[] }) {
  const [first] = files;
  if (first === undefined) return null;
  if (first.kind === 'document') return <DocumentCard file={first} />;
  const shown = files.slice(0, MAX_TILES);
  return (
    <div className={classes.grid} data-count={shown.length}>
      {shown.map((file, index) => (
        <div key={file.key} className={classes.tile}>
          {file.kind === 'video' ? (
            // oxlint-disable-next-line jsx-a11y/media-has-caption -- the author's own file, shown before it is published
            <video src={file.url} controls preload="metadata" aria-label={file.title || file.name} />
          ) : (
            <img src={file.url} alt={file.alt || file.name} />
          )}
          {index === MAX_TILES - 1 && files.length > MAX_TILES && (
            <span className={classes.over}>+{files.length - MAX_TILES}</span>
          )}
        </div>
      ))}
    </div>
  );
}

function DocumentCard({ file }: { file: PreviewFile }) {
  return (
    <div className={classes.document}>
      <Glyph name="document" size={44} />
      <strong>{file.title || file.name}</strong>
      {file.pages !== null && <span className={classes.soft}>{plural(file.pages, 'page')}</span>}
    </div>
  );
}

export function ArticleCard({ article }: { article: Article }) {
  return (
    <div className={classes.article}>
      {article.thumbnail && <img src={mediaUrl(article.thumbnail)} alt="" />}
      <div className={classes.articleText}>
        <div className={classes.articleTitle}>{article.title || 'Title of the link'}</div>
        <div className={classes.soft}>{hostOf(article.url)}</div>
      </div>
    </div>
  );
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host.replace(/^www\./, '') : url;
}
