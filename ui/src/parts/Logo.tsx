import classes from './Logo.module.css';

export function Logo({ name }: { name: string }) {
  return (
    <span className={classes.root}>
      <img src="favicon.svg" alt="" width={26} height={26} />
      <span>{name}</span>
    </span>
  );
}
