import { Center, Paper, Stack, Text, Title } from '@mantine/core';
import type { ReactNode } from 'react';
import { Logo } from '../parts/Logo';

interface LoginScreenProps {
  product: string;
  note: string;
  /** The form. */
  children: ReactNode;
}

export function LoginScreen({ product, note, children }: LoginScreenProps) {
  return (
    <Center component="main" mih="100vh" p="md">
      <Paper withBorder p="xl" radius="lg" w={400} maw="100%" shadow="sm">
        <Stack gap="lg">
          <Logo name={product} />
          <div>
            <Title order={1} size="h3">
              Sign in
            </Title>
            <Text c="dimmed" size="sm" mt={4}>
              {note}
            </Text>
          </div>
          {children}
        </Stack>
      </Paper>
    </Center>
  );
}
