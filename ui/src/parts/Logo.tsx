import classes from './Logo.module.css';

export function Logo() {
  return (
    <span className={classes.root}>
      <img src="favicon.svg" alt="" width={26} height={26} />
      <span>Duetime</span>
    </span>
  );
}
