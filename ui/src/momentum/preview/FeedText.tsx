import { useState } from 'react';
import { codePoints, splitTokens, tokensOf, type Token } from '../text/tokens';
import classes from './FeedCard.module.css';

/** The text as a feed shows it: folded, with coloured hashtags and mentions. */
export function FeedText({ text, foldAfter }: { text: string; foldAfter: number | null }) {
  const [open, setOpen] = useState(false);
  const tokens = tokensOf(text);
  const length = tokens.reduce((total, token) => total + codePoints(token.visible), 0);
  const folds = foldAfter !== null && length > foldAfter;
  const shown = folds && !open ? splitTokens(tokens, foldAfter)[0] : tokens;
  if (!text.trim()) return <p className={`${classes.text} ${classes.empty}`}>Your text appears here.</p>;
  return (
    <p className={classes.text}>
      {shown.map((token, index) => (
        // oxlint-disable-next-line react/no-array-index-key -- tokens have no identity but their place
        <Part key={index} token={token} />
      ))}
      {folds && (
        <>
          {!open && '… '}
          <button type="button" className={classes.more} onClick={() => setOpen(!open)} aria-expanded={open}>
            {open ? ' show less' : 'see more'}
          </button>
        </>
      )}
    </p>
  );
}

function Part({ token }: { token: Token }) {
  if (token.kind === 'text') return token.visible;
  return <span className={token.kind === 'url' ? classes.link : classes.token}>{token.visible}</span>;
}
