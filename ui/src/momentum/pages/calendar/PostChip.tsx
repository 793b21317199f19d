import { memo, type KeyboardEvent } from 'react';
import { Link } from 'wouter';
import { clockTime } from '../../../time/format';
import type { SlimPost } from '../../api/types';
import { Glyph } from '../../parts/Glyph';
import { isPlanned, stateLabel, toneOf } from '../../parts/states';
import { useCalendarActions } from './calendarContext';
import classes from './PostChip.module.css';

/** A post in the calendar. A planned one can be dragged; `m` opens the dialog that moves it. */
export const PostChip = memo(function PostChip({ post }: { post: SlimPost }) {
  const { zone, accounts, onDrag, onMove } = useCalendarActions();
  const time = clockTime(Date.parse(post.scheduled_at), zone, false);
  const title = post.title || 'Post without text';
  const movable = isPlanned(post.state);
  const account = accounts.get(post.account_id)?.author.name ?? '';
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== 'm' || !movable || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    onMove(post);
  };
  return (
    <div
      className={classes.root}
      data-tone={toneOf(post.state)}
      data-post={post.id}
      draggable={movable}
      onDragStart={(event) => {
        event.dataTransfer.setData('text/plain', title);
        event.dataTransfer.effectAllowed = 'move';
        onDrag(post);
      }}
      onDragEnd={() => onDrag(null)}
    >
      <Link
        href={`/posts/${post.id}`}
        className={classes.link ?? ''}
        draggable={false}
        onKeyDown={onKeyDown}
        title={`${time} ${title}\n${account}\n${stateLabel(post.state)}`}
      >
        <span className={classes.time}>{time}</span>{' '}
        {post.media_kind && (
          <span className={classes.glyph}>
            <Glyph name={post.media_kind} size={12} />
          </span>
        )}
        <span className={classes.title}>{title}</span>
        <span className={classes.spoken}>
          , {account}, {stateLabel(post.state)}
        </span>
      </Link>
      {movable && (
        <button
          type="button"
          className={classes.move}
          onClick={() => onMove(post)}
          aria-label={`Move ${title}`}
        >
          <Glyph name="move" size={14} />
        </button>
      )}
    </div>
  );
});
