import { Notification, Portal, Text } from '@mantine/core';
import { Icon } from './Icon';
import classes from './Toasts.module.css';
import { dismiss, useToasts } from './toasts';

export function Toasts() {
  const toasts = useToasts();
  return (
    <Portal>
      <div className={classes.root} role="status" aria-live="polite">
        {toasts.map((toast) => (
          <Notification
            key={toast.id}
            color={toast.tone === 'success' ? 'teal' : 'red'}
            icon={<Icon name={toast.tone === 'success' ? 'check' : 'warning'} />}
            onClose={() => dismiss(toast.id)}
            closeButtonProps={{ 'aria-label': 'Dismiss' }}
            withBorder
          >
            {toast.text}
            {toast.code && (
              <Text size="xs" c="dimmed">
                <code>{toast.code}</code>
              </Text>
            )}
          </Notification>
        ))}
      </div>
    </Portal>
  );
}
