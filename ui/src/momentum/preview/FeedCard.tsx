import { Icon } from '../../parts/Icon';
import type { Account } from '../api/types';
import { AccountMark } from '../parts/AccountMark';
import { Glyph, type GlyphName } from '../parts/Glyph';
import { visibilityLabel } from '../parts/visibility';
import classes from './FeedCard.module.css';
import { ArticleCard, FeedMedia } from './FeedMedia';
import { FeedText } from './FeedText';
import type { PreviewPost } from './previewPost';

interface FeedCardProps {
  post: PreviewPost;
  account: Account | undefined;
  foldAfter: number | null;
}

const REACTIONS: ReadonlyArray<[GlyphName, string]> = [
  ['like', 'Like'],
  ['comment', 'Comment'],
  ['repost', 'Repost'],
  ['send', 'Send'],
];

/** A post as readers see it in their feed. */
export function FeedCard({ post, account, foldAfter }: FeedCardProps) {
  const { text, files, article, visibility } = post;
  return (
    <div className={classes.root}>
      <div className={classes.head}>
        {account && <AccountMark account={account} size={46} />}
        <div className={classes.who}>
          <div className={classes.name}>{account?.author.name ?? 'Choose an account'}</div>
          <div className={classes.soft}>{account && lineUnder(account)}</div>
          <div className={classes.soft}>
            Now · <Icon name={visibility.toUpperCase() === 'PUBLIC' ? 'globe' : 'user'} size={12} />
            {visibilityLabel(visibility)}
          </div>
        </div>
      </div>
      <FeedText text={text} foldAfter={foldAfter} />
      {files.length > 0 ? <FeedMedia files={files} /> : article && <ArticleCard article={article} />}
      <div className={classes.foot} aria-hidden="true">
        {REACTIONS.map(([glyph, label]) => (
          <span key={label}>
            <Glyph name={glyph} size={17} /> {label}
          </span>
        ))}
      </div>
    </div>
  );
}

function lineUnder({ author }: Account): string {
  if (author.handle) return `@${author.handle.replace(/^@/, '')}`;
  return author.kind === 'organization' ? 'Company page' : 'Member';
}
