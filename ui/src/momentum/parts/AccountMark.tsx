import { Avatar } from '@mantine/core';
import type { Account } from '../api/types';
import classes from './AccountMark.module.css';

const LETTERS: Record<string, string> = { linkedin: 'in', mastodon: 'm' };

const signOf = (platform: string): string => LETTERS[platform] ?? platform.slice(0, 1);

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
        {signOf(platform)}
      </span>
    </span>
  );
}

/** The account in a row of a table, without its picture: pictures that come and go make scrolling slow. */
export function AccountName({ account }: { account: Account | undefined }) {
  if (account === undefined) return <span>Unknown account</span>;
  return (
    <span className={classes.line}>
      <span className={classes.sign} data-platform={account.platform} aria-hidden="true">
        {signOf(account.platform)}
      </span>
      <span className={classes.name}>{account.author.name}</span>
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
