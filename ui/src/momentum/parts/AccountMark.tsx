import { Avatar } from '@mantine/core';
import type { Account } from '../api/types';
import classes from './AccountMark.module.css';

const LETTERS: Record<string, string> = { linkedin: 'in', mastodon: 'm' };

const SMALL = 36;

/** The picture of an account with the sign of its platform. */
export function AccountMark({ account, size = 28 }: { account: Account; size?: number }) {
  const { author, platform } = account;
  return (
    <span className={classes.root} data-small={size < SMALL || undefined} aria-hidden="true">
      <Avatar
        src={author.picture}
        name={author.name}
        size={size}
        radius={author.kind === 'organization' ? 'sm' : 'xl'}
        color="iris"
        alt=""
      />
      <span className={classes.platform} data-platform={platform}>
        {LETTERS[platform] ?? platform.slice(0, 1)}
      </span>
    </span>
  );
}

/** The account of a post in one line. */
export function AccountLine({ account, size = 24 }: { account: Account | undefined; size?: number }) {
  if (account === undefined) return <span>Unknown account</span>;
  return (
    <span className={classes.line}>
      <AccountMark account={account} size={size} />
      <span className={classes.name}>{account.author.name}</span>
    </span>
  );
}
