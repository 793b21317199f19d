import { Kbd, UnstyledButton } from '@mantine/core';
import { Icon } from '../parts/Icon';
import classes from './SearchButton.module.css';

export function SearchButton({ onClick }: { onClick: () => void }) {
  return (
    <UnstyledButton className={classes.root} onClick={onClick}>
      <Icon name="search" size={15} />
      <span className={classes.label}>Search or run a command</span>
      <Kbd size="xs" className={classes.key}>
        Ctrl K
      </Kbd>
    </UnstyledButton>
  );
}
