import { Input, MultiSelect, UnstyledButton } from '@mantine/core';
import { useId } from 'react';
import type { Account } from '../../api/types';
import { AccountLine } from '../../parts/AccountMark';
import classes from './AccountPicker.module.css';

interface AccountPickerProps {
  accounts: Account[];
  chosen: string[];
  onChange: (ids: string[]) => void;
  /** A stored post belongs to one account. */
  single: boolean;
  error?: string | undefined;
}

const MAX_CHIPS = 8;

export function AccountPicker({ accounts, chosen, onChange, single, error }: AccountPickerProps) {
  const field = useId();
  const description = single ? undefined : 'Each account gets its own post.';
  if (accounts.length > MAX_CHIPS) {
    return (
      <MultiSelect
        label={single ? 'Account' : 'Accounts'}
        description={description}
        data={accounts.map(({ id, author }) => ({ value: id, label: author.name }))}
        value={chosen}
        onChange={(ids) => onChange(single ? ids.slice(-1) : ids)}
        error={error}
        searchable
      />
    );
  }
  const toggle = (id: string) => {
    if (single) onChange([id]);
    else onChange(chosen.includes(id) ? chosen.filter((one) => one !== id) : [...chosen, id]);
  };
  return (
    <Input.Wrapper
      id={field}
      label={single ? 'Account' : 'Accounts'}
      labelElement="div"
      description={accounts.length > 1 ? description : undefined}
      error={error}
    >
      <div
        className={classes.chips}
        role="group"
        aria-label={single ? 'Account' : 'Accounts'}
        data-error-group={error ? true : undefined}
        aria-describedby={error ? `${field}-error` : undefined}
        tabIndex={-1}
      >
        {accounts.map((account) => (
          <UnstyledButton
            key={account.id}
            className={classes.chip}
            aria-pressed={chosen.includes(account.id)}
            data-expired={account.state === 'expired' || undefined}
            onClick={() => toggle(account.id)}
          >
            <AccountLine account={account} />
            {account.state === 'expired' && ' (expired)'}
          </UnstyledButton>
        ))}
      </div>
    </Input.Wrapper>
  );
}
