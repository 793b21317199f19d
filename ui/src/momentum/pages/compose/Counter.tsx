import { RingProgress } from '@mantine/core';
import classes from './TextField.module.css';

const WARN_AT = 0.9;

/** Characters used and allowed. */
export function Counter({ length, limit }: { length: number; limit: number }) {
  const share = length / limit;
  const colour = share > 1 ? 'red' : share > WARN_AT ? 'yellow' : 'iris';
  return (
    <span className={classes.counter} data-over={share > 1 || undefined} data-testid="counter">
      {share > 1
        ? `${(length - limit).toLocaleString('en')} too many`
        : `${length.toLocaleString('en')} / ${limit.toLocaleString('en')}`}
      <RingProgress
        size={22}
        thickness={3}
        sections={[{ value: Math.min(share, 1) * 100, color: colour }]}
        aria-hidden="true"
      />
    </span>
  );
}
