import classes from './LabelList.module.css';

export function LabelList({ labels }: { labels: Record<string, string> }) {
  const pairs = Object.entries(labels);
  if (pairs.length === 0) return null;
  return (
    <span className={classes.root}>
      {pairs.map(([key, value]) => (
        <span key={key} className={classes.label} title={`${key}: ${value}`}>
          {key}: {value}
        </span>
      ))}
    </span>
  );
}
